"""Changing the fields of a message that a field mask names.

Paths come in snake_case or camelCase, as clients send them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from google.protobuf.message import Message

from common.errors import InvalidArgument

_UPPER = re.compile("[A-Z]")


def normalized(paths: Iterable[str]) -> list[str]:
    """The paths in snake_case, each once, in order."""
    return list(dict.fromkeys(_UPPER.sub(lambda match: "_" + match[0].lower(), path) for path in paths))


def set_path(target: Message, source: Message, path: str) -> None:
    """Let the field at `path` be what it is in `source`, unset included. Raises INVALID_ARGUMENT for an unknown path."""
    name, _, rest = path.partition(".")
    field = target.DESCRIPTOR.fields_by_name.get(name)
    if field is None or (rest and field.message_type is None):
        raise InvalidArgument(f"invalid field mask path: {path}")
    if rest:
        set_path(getattr(target, name), getattr(source, name), rest)
        return
    is_set = source.HasField(name) if field.has_presence else True
    target.ClearField(name)
    if is_set and field.message_type is not None:
        getattr(target, name).CopyFrom(getattr(source, name))
    elif is_set:
        setattr(target, name, getattr(source, name))
