"""Which method of the API a path means: made once from the `google.api.http` annotations of the services' descriptors.

A template is literals and variables, one a segment (`/namespaces/{namespace}/workflows/{execution.workflow_id}`); a
variable's name is the path of the request field that it fills. No template of the API has wildcards or verbs, and a
descriptor that brings one is refused at the start.

As in upstream, the path's escapes are resolved before it is cut into segments, so an id with a slash cannot be named here.
Source: grpc-gateway's runtime/mux.go, in the mode that upstream uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from google.api import annotations_pb2
from google.api.http_pb2 import HttpRule
from google.protobuf.descriptor import MethodDescriptor
from msgspec import Struct

from frontend.calls import method_named
from frontend.methods import SERVICES, Method

_VARIABLE = re.compile(r"\{([a-z_.]+)\}")
_LITERAL = re.compile(r"[A-Za-z0-9_-]+")


class Route(Struct, frozen=True):
    verb: str
    """The HTTP method."""
    segments: tuple[str | None, ...]
    """None for a variable."""
    variables: tuple[str, ...]
    """Paths of request fields, one for each None."""
    has_body: bool
    """The body is the request; else the query has its fields."""
    method: Method

    def match(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The variables' values, or None when the path is another's."""
        values = []
        for segment, part in zip(self.segments, parts, strict=True):
            if segment is None:
                values.append(part)
            elif segment != part:
                return None
        return tuple(values)


class Match(Struct, frozen=True):
    route: Route
    values: tuple[str, ...]


class NoRoute(Exception):
    """Nothing is at the path, or (`other_verb`) only something that another HTTP method reaches."""

    def __init__(self, *, other_verb: bool) -> None:
        super().__init__("method not allowed" if other_verb else "not found")
        self.other_verb = other_verb


def find(verb: str, path: str, *, may_be_get: bool = False) -> Match:
    """`may_be_get`: a form that was posted where only GET is known stands for a query too long for its line."""
    parts = tuple(path[1:].split("/"))
    candidates = [
        Match(route, values)
        for route in _routes_by_length().get(len(parts), ())
        if (values := route.match(parts)) is not None
    ]
    for match in candidates:
        if match.route.verb == verb:
            return match
    for match in candidates:
        if may_be_get and match.route.verb == "GET":
            return match
    raise NoRoute(other_verb=bool(candidates))


@cache
def all_routes() -> tuple[Route, ...]:
    return tuple(route for service in SERVICES for method in service.methods for route in _routes_of(method))


@cache
def _routes_by_length() -> dict[int, list[Route]]:
    """By number of segments; of two that match, the one with the more literal beginning is first."""
    found: dict[int, list[Route]] = {}
    for route in all_routes():
        found.setdefault(len(route.segments), []).append(route)
    for routes in found.values():
        routes.sort(key=lambda route: [segment is None for segment in route.segments])
    return found


def _routes_of(method: MethodDescriptor) -> Iterator[Route]:
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    for binding in (rule, *rule.additional_bindings):
        if binding.WhichOneof("pattern") is not None:
            yield _route(method, binding)


def _route(method: MethodDescriptor, rule: HttpRule) -> Route:
    kind = rule.WhichOneof("pattern")
    template: str = getattr(rule, str(kind))
    if kind == "custom" or rule.body not in ("", "*") or rule.response_body:
        raise ValueError(f"{method.full_name}: no way to serve {template}")
    segments: list[str | None] = []
    variables = []
    for part in template.removeprefix("/").split("/"):
        variable = _VARIABLE.fullmatch(part)
        if variable is not None:
            variables.append(variable[1])
        elif _LITERAL.fullmatch(part) is None:
            raise ValueError(f"{method.full_name}: no way to serve {template}")
        segments.append(None if variable is not None else part)
    return Route(
        verb=str(kind).upper(),
        segments=tuple(segments),
        variables=tuple(variables),
        has_body=rule.body == "*",
        method=method_named(method.name),
    )
