"""The filter language of ListWorkers and CountWorkers: comparisons of a worker's fields, joined by AND, OR and brackets.

Text fields know =, !=, [NOT] STARTS_WITH and IS [NOT] NULL; times know the six comparisons, [NOT] BETWEEN and IS [NOT] NULL.
A filter that can be read but makes no sense for a worker (an unknown field, say) matches none, as upstream has it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat

from common.errors import InvalidArgument
from common.protos import from_timestamp

Matches = Callable[[WorkerHeartbeat], bool]

TEXTS: dict[str, Callable[[WorkerHeartbeat], str]] = {
    "WorkerInstanceKey": lambda worker: worker.worker_instance_key,
    "WorkerIdentity": lambda worker: worker.worker_identity,
    "HostName": lambda worker: worker.host_info.host_name,
    "TaskQueue": lambda worker: worker.task_queue,
    "DeploymentName": lambda worker: worker.deployment_version.deployment_name,
    "BuildId": lambda worker: worker.deployment_version.build_id,
    "SdkName": lambda worker: worker.sdk_name,
    "SdkVersion": lambda worker: worker.sdk_version,
    "WorkerStatus": lambda worker: _status(worker),
    "Status": lambda worker: _status(worker),
    "status": lambda worker: _status(worker),
}
TIMES: dict[str, Callable[[WorkerHeartbeat], Timestamp | None]] = {
    "StartTime": lambda worker: worker.start_time if worker.HasField("start_time") else None,
    "HeartbeatTime": lambda worker: worker.heartbeat_time if worker.HasField("heartbeat_time") else None,
}
COMPARISONS: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
KEYWORDS = {"AND", "OR", "NOT", "IS", "NULL", "BETWEEN", "STARTS_WITH"}

POSITION_BEFORE = len("select * from table1 where ")
"""Positions in error messages count as upstream's do: its parser is given a whole statement."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>[^`]+)`|(?P<number>\d+(?:\.\d+)?)
    |'(?P<single>(?:[^'\\]|\\.|'')*)'|"(?P<double>(?:[^"\\]|\\.|"")*)"|(?P<sign><=|>=|!=|<>|[=<>(),]))""",
    re.VERBOSE,
)


class Token(Struct, frozen=True):
    kind: str
    """"keyword", "name", "value", "sign" or "end"."""
    text: str
    end: int


def parse_filter(query: str) -> Matches:
    """Raises InvalidArgument for a filter that can't be read."""
    return _Parser(query).parse()


class _Parser:
    """By recursive descent; a method returns the condition it has read."""

    def __init__(self, query: str) -> None:
        self._tokens = _tokens(query.strip())
        self._at = 0

    def parse(self) -> Matches:
        condition = self._alternatives()
        if self._next.kind != "end":
            raise _syntax_error(self._next)
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self, kind: str, *texts: str) -> Token:
        token = self._next
        if token.kind != kind or (texts and token.text not in texts):
            raise _syntax_error(token)
        self._at += 1
        return token

    def _took(self, kind: str, text: str) -> bool:
        found = self._next.kind == kind and self._next.text == text
        self._at += found
        return found

    def _alternatives(self) -> Matches:
        conditions = [self._all_of()]
        while self._took("keyword", "OR"):
            conditions.append(self._all_of())
        return conditions[0] if len(conditions) == 1 else lambda worker: any(c(worker) for c in conditions)

    def _all_of(self) -> Matches:
        conditions = [self._condition()]
        while self._took("keyword", "AND"):
            conditions.append(self._condition())
        return conditions[0] if len(conditions) == 1 else lambda worker: all(c(worker) for c in conditions)

    def _condition(self) -> Matches:
        if self._took("sign", "("):
            condition = self._alternatives()
            self._take("sign", ")")
            return condition
        field = self._take("name").text
        if self._took("keyword", "IS"):
            is_not = self._took("keyword", "NOT")
            self._take("keyword", "NULL")
            return _is_null(field, expected=not is_not)
        negated = self._took("keyword", "NOT")
        if self._took("keyword", "STARTS_WITH"):
            return _starts_with(field, self._take("value").text, negated=negated)
        if self._took("keyword", "BETWEEN"):
            first = self._take("value").text
            self._take("keyword", "AND")
            return _between(field, first, self._take("value").text, negated=negated)
        if negated:
            raise _syntax_error(self._next)
        sign = self._take("sign", *COMPARISONS).text
        return _compare(field, sign, self._take("value").text)


def _tokens(query: str) -> list[Token]:
    tokens = []
    at = 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if match is None:
            raise _syntax_error(Token("sign", query[at], at + 1))
        at = match.end()
        tokens.append(_token(match))
    tokens.append(Token("end", "", len(query)))
    return tokens


def _token(match: re.Match[str]) -> Token:
    kind = str(match.lastgroup)
    text = match.group(kind)
    if kind == "word" and text.upper() in KEYWORDS:
        return Token("keyword", text.upper(), match.end())
    if kind in ("single", "double"):
        return Token("value", re.sub(r"\\(.)|(['\"])\2", lambda m: m[1] or m[2], text), match.end())
    return Token({"word": "name", "quoted": "name", "number": "value"}.get(kind, "sign"), text, match.end())


def _syntax_error(token: Token) -> InvalidArgument:
    near = f" near '{token.text}'" if token.kind in ("name", "value", "keyword") else ""
    return InvalidArgument(f"malformed query: syntax error at position {POSITION_BEFORE + token.end + 1}{near}")


def _none(worker: WorkerHeartbeat) -> bool:  # noqa: ARG001
    return False


def _compare(field: str, sign: str, value: str) -> Matches:
    compare = COMPARISONS[sign]
    if field in TEXTS and sign in ("=", "!=", "<>") and value:
        text = TEXTS[field]
        return lambda worker: (text(worker) == value) == (sign == "=")
    if field in TIMES and (limit := _time(value)) is not None:
        time = TIMES[field]
        return lambda worker: compare(from_timestamp(time(worker) or Timestamp()), limit)
    return _none


def _starts_with(field: str, value: str, *, negated: bool) -> Matches:
    if field not in TEXTS or not value:
        return _none
    text = TEXTS[field]
    return lambda worker: text(worker).startswith(value) != negated


def _between(field: str, first: str, last: str, *, negated: bool) -> Matches:
    low, high = _time(first), _time(last)
    if field not in TIMES or low is None or high is None:
        return _none
    time = TIMES[field]

    def matches(worker: WorkerHeartbeat) -> bool:
        at = time(worker)
        return at is not None and (low <= from_timestamp(at) <= high) != negated

    return matches


def _is_null(field: str, *, expected: bool) -> Matches:
    if field in TEXTS:
        text = TEXTS[field]
        return lambda worker: (not text(worker)) == expected
    if field in TIMES:
        time = TIMES[field]
        return lambda worker: (time(worker) is None) == expected
    return _none


def _time(value: str) -> datetime | None:
    """RFC 3339, or nanoseconds since the epoch as a number."""
    if value.isdecimal():
        return from_timestamp(Timestamp(seconds=int(value) // 10**9, nanos=int(value) % 10**9))
    try:
        moment = Timestamp()
        moment.FromJsonString(value)
    except ValueError:
        return None
    return from_timestamp(moment)


def _status(worker: WorkerHeartbeat) -> str:
    """As upstream's generated names have it: "Running", "ShuttingDown"."""
    name = WorkerStatus.Name(worker.status).removeprefix("WORKER_STATUS_")
    return "".join(part.title() for part in name.split("_"))
