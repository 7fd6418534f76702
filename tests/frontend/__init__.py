"""The frontend alone: a real gRPC server before fakes of the other roles."""
