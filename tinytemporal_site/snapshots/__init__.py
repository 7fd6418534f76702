"""The committed records of every table as one validated JSON file, and back: see `form` and `files`."""
