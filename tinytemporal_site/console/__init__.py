"""The admin's own pages: what the tables hold with the live process beside it, and the actions on it (see README)."""
