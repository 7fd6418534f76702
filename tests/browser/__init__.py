"""The admin in a real headless Chromium, before a real server with a real worker."""
