"""The read model that lists and counts are answered from."""
