"""How Django knows this app."""

from django.apps import AppConfig


class MatchingConfig(AppConfig):
    name = "matching"
    verbose_name = "Matching"
    default_auto_field = "django.db.models.BigAutoField"
