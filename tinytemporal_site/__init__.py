"""Settings, URLs, composition of the roles and management commands."""

from tinytemporal_site import grpc_environment

grpc_environment.prepare()
