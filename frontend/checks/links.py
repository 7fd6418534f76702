"""Links and completion callbacks attached to requests.

Source: upstream's common/links/links.go and chasm/lib/callback/validator.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from temporalio.api.common.v1 import Callback, Link

from common.callback_addresses import check_address
from common.contracts.nexus import SYSTEM_CALLBACK_URL
from common.errors import InvalidArgument, Unimplemented
from frontend.checks.ids import too_long
from frontend.config import FrontendConfig

# variant → its required fields and what upstream calls them
_REQUIRED: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "workflow_event": (
        "workflow event",
        (("namespace", "namespace field"), ("workflow_id", "workflow ID field"), ("run_id", "run ID field")),
    ),
    "batch_job": ("batch job", (("job_id", "job ID"),)),
    "nexus_operation": (
        "nexus operation",
        (("namespace", "namespace field"), ("operation_id", "operation ID field"), ("run_id", "run ID field")),
    ),
    "activity": (
        "activity",
        (("namespace", "namespace field"), ("activity_id", "activity ID field"), ("run_id", "run ID field")),
    ),
    "workflow": (
        "workflow",
        (("namespace", "namespace field"), ("workflow_id", "workflow ID field"), ("run_id", "run ID field")),
    ),
}


def check_links(links: Sequence[Link], *, config: FrontendConfig) -> None:
    if len(links) > config.links_per_request:
        raise InvalidArgument(f"cannot attach more than {config.links_per_request} links per request, got {len(links)}")
    for link in links:
        size = link.ByteSize()
        if size > config.link_limit:
            raise InvalidArgument(f"link exceeds allowed size of {config.link_limit}, got {size}")
        _check_variant(link)


def check_callbacks(callbacks: Sequence[Callback], *, config: FrontendConfig) -> None:
    """Count, addresses and headers; the names of headers are made lower case."""
    if len(callbacks) > config.callbacks_per_execution:
        raise InvalidArgument(f"cannot attach more than {config.callbacks_per_execution} callbacks to an execution")
    for callback in callbacks:
        variant = callback.WhichOneof("variant")
        if variant is None:
            raise Unimplemented("unknown callback variant: <nil>")
        if variant == "nexus":
            _check_nexus(callback.nexus, config)


def _check_nexus(callback: Callback.Nexus, config: FrontendConfig) -> None:
    if too_long(callback.url, config.callback_url_limit):
        raise InvalidArgument(f"invalid url: url length longer than max length allowed of {config.callback_url_limit}")
    if callback.url != SYSTEM_CALLBACK_URL:
        check_address(callback.url, allowed=config.callback_addresses)
    size = sum(len(name.encode()) + len(value.encode()) for name, value in callback.header.items())
    if size > config.callback_header_limit:
        raise InvalidArgument(
            f"invalid header: header size longer than max allowed size of {config.callback_header_limit}"
        )
    headers = {name.lower(): value for name, value in callback.header.items()}
    callback.header.clear()
    callback.header.update(headers)


def with_callback_links(links: Iterable[Link], callbacks: Iterable[Callback]) -> list[Link]:
    """All links of a request, for `check_links`."""
    return [*links, *(link for callback in callbacks for link in callback.links)]


def _check_variant(link: Link) -> None:
    variant = link.WhichOneof("variant")
    if variant not in _REQUIRED:
        raise InvalidArgument("unsupported link variant")
    noun, fields = _REQUIRED[variant]
    value = getattr(link, variant)
    for field, words in fields:
        if not getattr(value, field):
            raise InvalidArgument(f"{noun} link must not have an empty {words}")
    if variant == "workflow_event" and value.event_ref.event_id and not value.event_ref.event_type:
        raise InvalidArgument("workflow event link ref cannot have an unspecified event type and a non-zero event ID")
