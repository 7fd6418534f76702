"""Doing one thing: a call bounded in time, logged before and after, and what came of it in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import HttpRequest
from google.protobuf.message import Message
from msgspec import Struct

from common.errors import TemporalError
from tinytemporal_site.console import live
from tinytemporal_site.console.actions import audit

WITHIN_S = 5.0
"""How long an action may take before its page says that nobody answered."""


class Outcome(Struct, frozen=True, kw_only=True):
    """`problem` is empty when it was done; `status` is the page's."""

    problem: str = ""
    status: int = 200
    answer: Any = None


class Target(Struct, frozen=True, kw_only=True):
    """What is acted on, as the log names it."""

    model: type[Model]
    key: str
    shown: str


def do(request: HttpRequest, *, target: Target, action: str, reason: str, call: Callable[[], Any]) -> Outcome:
    """`call` makes one call of the live side. Raises nothing that a client would be told as an error."""
    logged = {"action": action, "reason": reason}
    entry = audit.begin(request, model=target.model, key=target.key, shown=target.shown, **logged)
    outcome = _outcome(call)
    audit.complete(entry, outcome=outcome.problem or "done", **logged)
    return outcome


def api(method: str, message: Message) -> Callable[[], Any]:
    return lambda: live.request(method, message, timeout=WITHIN_S)


def identity(request: HttpRequest) -> str:
    """Whoever signed in, as histories name them."""
    return f"admin:{request.user.get_username()}"


def _outcome(call: Callable[[], Any]) -> Outcome:
    try:
        answer = call()
    except TemporalError as error:
        return Outcome(problem=f"Refused: {error.message}", status=409)
    if isinstance(answer, live.Away):
        doubt = (
            "It may have been done all the same: look before trying again." if answer.in_doubt else "Nothing was done."
        )
        return Outcome(problem=f"No answer: {answer.reason} {doubt}", status=503)
    return Outcome(answer=answer)
