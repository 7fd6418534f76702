"""The same scenarios on this server and on the official development server, and what they answer differently.

A scenario drives one frontend through raw gRPC, client and worker side, and notes what it sees; every run that it meets is
noted once more at the end: its whole history and its description. `normalise` takes out what no two servers can agree on
(ids, times, tokens, sizes) and keeps the relations, `differences` compares, `python -m tests.compare` reports.
"""
