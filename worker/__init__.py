"""The server's own loops: schedules, batches, retention and scans."""
