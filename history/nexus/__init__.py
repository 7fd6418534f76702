"""Calling Nexus operations: what a call says and what its answer means (`calls`), the server's own operations (`system`),
services elsewhere (`external`), and all of it with limits of time and a circuit breaker (`caller`)."""
