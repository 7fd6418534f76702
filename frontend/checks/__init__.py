"""Checks of requests, shared by the API methods: each raises the typed error with upstream's words, and fills in the
defaults that upstream fills in."""
