"""The frontend's HTTP port: the JSON HTTP API of the same methods that gRPC has."""
