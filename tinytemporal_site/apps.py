"""How Django knows this app."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "tinytemporal_site"
    verbose_name = "tinytemporal"
    default_auto_field = "django.db.models.BigAutoField"
