"""`make bench`: this server beside the official development server, same machine, same run. See `__main__`."""
