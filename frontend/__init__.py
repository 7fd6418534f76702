"""Temporal's public gRPC services: validation and routing, no state of its own."""
