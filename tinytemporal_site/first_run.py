"""The account that a newcomer signs in to the admin with."""

import secrets

from django.contrib.auth import get_user_model

from tinytemporal_site.sql_lock import alone_in

ADMIN = "admin"


def ensure_admin() -> str | None:
    """Makes the administrator `admin` with a random password and returns that password, which is kept nowhere.

    None, and nothing done, when there is an administrator already or the name is taken.
    """
    with alone_in():
        users = get_user_model().objects
        if users.filter(is_superuser=True).exists() or users.filter(username=ADMIN).exists():
            return None
        password = secrets.token_urlsafe(12)
        users.create_superuser(username=ADMIN, email="", password=password)
        return password
