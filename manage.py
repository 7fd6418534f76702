#!/usr/bin/env python
"""Django's command line for this project: `migrate`, `runservice`, `serve`, `verify` and the rest."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinytemporal_site.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
