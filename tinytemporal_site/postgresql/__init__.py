"""Django's PostgreSQL backend with a bound on its connections; the engine's own are bounded by `common.database`."""
