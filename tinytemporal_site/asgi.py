"""The web side for any ASGI server; `runservice` serves the same application itself (see `web.py`)."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinytemporal_site.settings")

from tinytemporal_site.web import build_application

application = build_application()
