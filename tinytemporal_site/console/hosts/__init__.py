"""Shards and hosts."""
