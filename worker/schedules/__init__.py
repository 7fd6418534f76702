"""Schedules: actions that happen at times. See README.md."""
