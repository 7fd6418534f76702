"""Takes the place of `django.contrib.admin`: the same admin, with the console's pages in it."""

from django.contrib.admin.apps import AdminConfig


class ConsoleAdminConfig(AdminConfig):
    default_site = "tinytemporal_site.console.site.ConsoleSite"
