"""The web side's addresses: the admin, and the root that leads to it."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("console/favicon.svg"))),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
