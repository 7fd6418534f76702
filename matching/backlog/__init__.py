"""The stored part of a physical queue: acknowledgement levels, fairness passes, reading, and grouped writes."""
