"""How Django knows this app."""

from django.apps import AppConfig


class HistoryConfig(AppConfig):
    name = "history"
    verbose_name = "History"
    default_auto_field = "django.db.models.BigAutoField"
