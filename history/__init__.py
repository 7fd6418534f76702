"""Executions: their shards, events, current runs and the tasks that they leave for later."""
