"""How Django knows this app."""

from django.apps import AppConfig


class VisibilityConfig(AppConfig):
    name = "visibility"
    verbose_name = "Visibility"
    default_auto_field = "django.db.models.BigAutoField"
