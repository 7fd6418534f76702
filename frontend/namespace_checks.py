"""The check of a request's namespace that comes before everything else.

Source: upstream's common/rpc/interceptor/namespace_validator.go, and the order that the official server shows: a
namespace or a token must be set, the name not too long, the namespace known, the token readable and of the same
namespace, the namespace in a state that allows the method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from common.contracts.tokens import NexusTaskToken, QueryToken, TaskToken, decode_token
from common.errors import InvalidArgument, NamespaceInvalidState, NotFound
from frontend.checks.ids import too_long
from frontend.methods import Method, NamespaceRule
from frontend.services import Frontend
from history.records import NamespaceRecord

Check = Callable[[Any], Awaitable[None]]
"""Of one method: takes its request, raises, and sets the namespace when only the token tells it."""


def namespace_check(frontend: Frontend, method: Method) -> Check | None:
    """None for a method that needs no check here."""
    match method.rule:
        case NamespaceRule.NAMED:
            return _named(frontend, method)
        case NamespaceRule.OF_TASK:
            return _by_token(frontend, method, _task_token)
        case NamespaceRule.OF_QUERY:
            return _by_token(frontend, method, _query_token)
        case NamespaceRule.OF_NEXUS:
            return _by_token(frontend, method, _nexus_token)
        case _:
            return None


async def require_namespace(frontend: Frontend, name: str) -> NamespaceRecord:
    """For methods with a rule of their own: the namespace of that name in any state but deleted."""
    check_name(name, limit=frontend.config.id_limit)
    return await frontend.namespaces.get(name)


def check_name(name: str, *, limit: int) -> None:
    if too_long(name, limit):
        raise InvalidArgument("Namespace length exceeds limit.")


def _named(frontend: Frontend, method: Method) -> Check:
    namespaces, limit, states = frontend.namespaces, frontend.config.id_limit, method.states

    async def check(request: Any) -> None:
        name = request.namespace
        record = namespaces.peek(name)
        if record is None:
            if not name:
                raise InvalidArgument("Namespace is empty.")
            check_name(name, limit=limit)
            record = await namespaces.get(name)
        if record.state not in states:
            raise _invalid_state(record, states)

    return check


def _task_token(data: bytes) -> TaskToken:
    return decode_token(TaskToken, data)


def _nexus_token(data: bytes) -> NexusTaskToken:
    return decode_token(NexusTaskToken, data)


def _query_token(data: bytes) -> QueryToken:
    """Upstream cannot tell a task's token from a query's, and looks for a query that is not there."""
    try:
        return decode_token(QueryToken, data)
    except InvalidArgument as error:
        if not _is_task_token(data):
            raise
        raise NotFound("query task not found, or already expired") from error


def _is_task_token(data: bytes) -> bool:
    try:
        decode_token(TaskToken, data)
    except InvalidArgument:
        return False
    return True


def _by_token(
    frontend: Frontend, method: Method, decode: Callable[[bytes], TaskToken | QueryToken | NexusTaskToken]
) -> Check:
    namespaces, limit, states = frontend.namespaces, frontend.config.id_limit, method.states

    async def check(request: Any) -> None:
        named = request.namespace
        if named and namespaces.peek(named) is None:
            check_name(named, limit=limit)
            await namespaces.get(named)
        token = decode(request.task_token)
        if not token.namespace:
            raise InvalidArgument("Namespace not set on request.")
        if named and token.namespace != named:
            raise InvalidArgument("Operation requested with a token from a different namespace.")
        request.namespace = token.namespace
        record = namespaces.peek(token.namespace) or await namespaces.get(token.namespace)
        if record.state not in states:
            raise _invalid_state(record, states)

    return check


def _invalid_state(record: NamespaceRecord, states: tuple[int, ...]) -> NamespaceInvalidState:
    return NamespaceInvalidState(namespace=record.name, state=record.state, allowed=list(states))  # type: ignore[arg-type]
