"""The seam between Matching and its tables; see `matching.store.base`."""
