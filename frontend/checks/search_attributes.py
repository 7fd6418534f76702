"""Search attributes that a request sets: checked as History checks those of commands, and typed in their metadata.

Source: upstream's common/searchattribute/validator.go; the names come first, as its UnaliasFields does.
"""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import SearchAttributes

from common.search_attributes import type_of
from history import search_attributes as rules


def check_search_attributes(attributes: SearchAttributes, *, namespace: str, custom: Mapping[str, str]) -> None:
    """`custom` gives the namespace's own attributes, name → type name. Writes each one's type into its metadata."""
    fields = attributes.indexed_fields
    rules.check_names(fields, namespace=namespace, custom=custom)
    rules.check_search_attributes(fields, custom=custom)
    rules.check_size(fields)
    for name, payload in fields.items():
        payload.metadata["type"] = (type_of(name, custom) or "").encode()
