"""Reading settings from the environment, so that a wrong value names its variable and says what would be right.

Every function takes the `environ.Env` that the settings module made and returns a checked value; every refusal
is an `ImproperlyConfigured` whose message starts with the variable's name.
"""

import ipaddress
import re
from typing import Literal
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from common.callback_addresses import CallbackAddress

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def refuse(*, name: str, value: str, wanted: str) -> ImproperlyConfigured:
    """The one form that every complaint about a setting has."""
    return ImproperlyConfigured(f"{name} is {value!r}; it must be {wanted}.")


def read_text(env: Env, *, name: str, default: str) -> str:
    """The variable without surrounding blanks; unset and empty both give the default."""
    value: str = env.str(name, default="")
    return value.strip() or default


def read_int(env: Env, *, name: str, default: int, least: int, most: int) -> int:
    """A whole number between `least` and `most`, both included."""
    text = read_text(env, name=name, default=str(default))
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not least <= int(text) <= most:
        raise refuse(name=name, value=text, wanted=f"a whole number from {least} to {most}")
    return int(text)


def read_port(env: Env, *, name: str, default: int) -> int:
    """A TCP port that a server can listen on; 0 lets the system choose one."""
    return read_int(env, name=name, default=default, least=0, most=65535)


def read_http_port(env: Env, *, name: str) -> int | Literal["off"] | None:
    """As `read_port`, but unset is None, and it can be switched off."""
    text = read_text(env, name=name, default="")
    if not text:
        return None
    if text.lower() == "off":
        return "off"
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise refuse(name=name, value=text, wanted="a port between 0 and 65535, or off")
    return int(text)


def read_bool(env: Env, *, name: str, default: bool) -> bool:
    text = read_text(env, name=name, default=str(default)).lower()
    if text not in _TRUE | _FALSE:
        raise refuse(name=name, value=text, wanted="true or false")
    return text in _TRUE


def read_choice(env: Env, *, name: str, default: str, choices: list[str]) -> str:
    """One of `choices`, which are in upper case; any case is understood."""
    text = read_text(env, name=name, default=default).upper()
    if text not in choices:
        raise refuse(name=name, value=text, wanted="one of " + ", ".join(choices))
    return text


def read_bind_address(env: Env, *, name: str, default: str) -> str:
    """An IPv4 or IPv6 address (without brackets) or a host name; never a URL and never with a port."""
    text = read_text(env, name=name, default=default)
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    try:
        ipaddress.ip_address(text)
    except ValueError:
        looks_numeric = re.fullmatch(r"[0-9.]+", text) is not None
        if looks_numeric or len(text) > 253 or not _HOST_NAME.fullmatch(text):
            raise refuse(name=name, value=text, wanted="an IP address or a host name, without a port") from None
    return text


def read_list(env: Env, *, name: str, default: list[str]) -> list[str]:
    """A comma-separated list; blanks around items and empty items are dropped."""
    text = read_text(env, name=name, default="")
    return [item.strip() for item in text.split(",") if item.strip()] or default


def read_callback_addresses(env: Env, *, name: str) -> tuple[CallbackAddress, ...]:
    """`*.example.com,http://localhost:*`; unset: none."""
    addresses = []
    for text in read_list(env, name=name, default=[]):
        try:
            addresses.append(CallbackAddress.parse(text))
        except ValueError as error:
            wanted = f"a list such as *.example.com,http://localhost:*, and of {text!r}: {error}"
            raise refuse(name=name, value=text, wanted=wanted) from None
    return tuple(addresses)


def read_web_address(env: Env, *, name: str) -> str:
    """`https://codec.example.com/base`; unset: empty."""
    text = read_text(env, name=name, default="")
    try:
        parts = urlsplit(text)
        usable = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:
        usable = False
    if text and (not usable or parts.query or parts.fragment):
        raise refuse(name=name, value=text, wanted="an address such as https://codec.example.com/base")
    return text


def read_shard_databases(env: Env, *, name: str, shards: int) -> dict[int, str]:
    """`1=default,2=second`: which Django database alias holds a History shard; unnamed shards use `default`.
    The alias `visibility` is the read model's."""
    wanted = (
        f"a list such as 1=default,2=second with shards from 1 to {shards}, each named once, and none at visibility"
    )
    chosen: dict[int, str] = {}
    for item in read_list(env, name=name, default=[]):
        match = re.fullmatch(r"([0-9]+)\s*=\s*([a-z][a-z0-9_]*)", item)
        known = match is not None and 1 <= int(match[1]) <= shards and match[2] != "visibility"
        if match is None or not known or int(match[1]) in chosen:
            raise refuse(name=name, value=item, wanted=wanted)
        chosen[int(match[1])] = match[2]
    return chosen


_MEMBER = re.compile(r"(?:([A-Za-z0-9._-]+)\s*=\s*)?((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5}))")


def read_hosts(env: Env, *, name: str) -> dict[str, str]:
    """`a=10.0.0.1:7234,b=10.0.0.2:7234`: a role's hosts and where they listen; one without a name is called by its
    address. Empty when the setting is."""
    hosts: dict[str, str] = {}
    for item in read_list(env, name=name, default=[]):
        match = _MEMBER.fullmatch(item)
        if match is None or not 0 < int(match[3]) <= 65535 or (match[1] or match[2]) in hosts:
            raise refuse(
                name=name, value=item, wanted="a list such as a=10.0.0.1:7234,b=10.0.0.2:7234, each named once"
            )
        hosts[match[1] or match[2]] = match[2]
    return hosts


def read_queue_partitions(env: Env, *, name: str, most: int) -> dict[str, int]:
    """`orders=8,billing/invoices=16`: how many partitions a task queue has, of all namespaces or of one."""
    found: dict[str, int] = {}
    for item in read_list(env, name=name, default=[]):
        queue, _, count = item.rpartition("=")
        queue = queue.strip()
        if not queue or queue in found or not count.strip().isdecimal() or not 1 <= int(count) <= most:
            raise refuse(
                name=name,
                value=item,
                wanted=f"a list such as orders=8,billing/invoices=16 with numbers from 1 to {most}, each queue named once",
            )
        found[queue] = int(count)
    return found
