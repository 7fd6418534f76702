"""Settings, URLs, composition of the roles and management commands."""
