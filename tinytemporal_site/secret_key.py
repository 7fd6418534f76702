"""The key that Django signs sessions with: given in production, made and kept for development."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_BYTES = 48


def resolve_secret_key(*, given: str, debug: bool, keep_in: Path) -> str:
    """`given` when there is one; else, with DEBUG on, the key kept in the file `keep_in` (made with mode 0600).

    Raises `ImproperlyConfigured` when DEBUG is off and nothing is given: a key on a development disk is no secret.
    """
    if given:
        return given
    if not debug:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set; with DEBUG off it must be a long random text, kept the same between starts."
        )
    try:
        return _read(keep_in) or _make(keep_in)
    except OSError as error:
        raise ImproperlyConfigured(f"SECRET_KEY is not set and {keep_in} cannot keep one ({error}).") from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _make(file: Path) -> str:
    """Write aside, then link: of two processes that start at once, both end up with the first one's key."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_urlsafe(_BYTES) + "\n")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(name, file)
    finally:
        os.unlink(name)
    key = _read(file)
    if not key:
        raise OSError("the file is empty")
    return key
