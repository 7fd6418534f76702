"""How Django knows the console."""

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class ConsoleConfig(AppConfig):
    name = "tinytemporal_site.console"
    label = "console"
    verbose_name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from common.admin import read_json_by
        from tinytemporal_site.console import groups
        from tinytemporal_site.console.executions.payloads import readable

        read_json_by(readable)

        sender = apps.get_app_config(groups.LAST)
        post_migrate.connect(groups.ensure_groups, sender=sender, dispatch_uid="console.groups")
