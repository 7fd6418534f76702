"""The web side for any WSGI server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinytemporal_site.settings")

application = get_wsgi_application()
