"""How Django knows the console."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "tinytemporal_site.console"
    label = "console"
    verbose_name = "console"
    default_auto_field = "django.db.models.BigAutoField"
