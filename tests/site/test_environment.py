"""Each setting's reader: what it takes, and that a refusal names the variable."""

import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from common.callback_addresses import CallbackAddress
from tests.databases import PROJECT, server_environment
from tests.site.command_line import run_python
from tinytemporal_site import environment
from tinytemporal_site.secret_key import resolve_secret_key

NAME = "SOME_SETTING"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Env]:
    """An environment in which the setting has this value, or none."""

    def make(value: str | None) -> Env:
        if value is None:
            monkeypatch.delenv(NAME, raising=False)
        else:
            monkeypatch.setenv(NAME, value)
        return Env()

    return make


Given = Callable[[str | None], Env]


@pytest.mark.parametrize(("text", "port"), [(None, 7233), ("", 7233), (" 17233 ", 17233), ("0", 0), ("65535", 65535)])
def test_port(given: Given, text: str | None, port: int) -> None:
    assert environment.read_port(given(text), name=NAME, default=7233) == port


@pytest.mark.parametrize("text", ["seven", "-1", "65536", "72.33", "7233;", "٧٢٣٣"])
def test_wrong_port_is_refused_by_name(given: Given, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"^{NAME} is .* a whole number from 0 to 65535"):
        environment.read_port(given(text), name=NAME, default=7233)


@pytest.mark.parametrize(
    ("text", "value"), [(None, True), ("off", False), ("FALSE", False), ("1", True), ("yes", True)]
)
def test_bool(given: Given, text: str | None, value: bool) -> None:
    assert environment.read_bool(given(text), name=NAME, default=True) is value


def test_wrong_bool_is_refused_by_name(given: Given) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is 'maybe'; it must be true or false"):
        environment.read_bool(given("maybe"), name=NAME, default=True)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (None, "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("::1", "::1"),
        ("[::]", "::"),
        ("localhost", "localhost"),
        ("db-1.example.org", "db-1.example.org"),
    ],
)
def test_bind_address(given: Given, text: str | None, address: str) -> None:
    assert environment.read_bind_address(given(text), name=NAME, default="127.0.0.1") == address


@pytest.mark.parametrize("text", ["127.0.0.1:7233", "http://localhost", "300.1.1.1", "a_b", "-x", "a..b", "x" * 254])
def test_wrong_bind_address_is_refused_by_name(given: Given, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=NAME):
        environment.read_bind_address(given(text), name=NAME, default="127.0.0.1")


def test_list(given: Given) -> None:
    assert environment.read_list(given(" a, b ,,c "), name=NAME, default=["x"]) == ["a", "b", "c"]
    assert environment.read_list(given(None), name=NAME, default=["x"]) == ["x"]


def test_choice(given: Given) -> None:
    assert environment.read_choice(given("debug"), name=NAME, default="INFO", choices=["DEBUG", "INFO"]) == "DEBUG"
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is 'LOUD'; it must be one of DEBUG, INFO"):
        environment.read_choice(given("loud"), name=NAME, default="INFO", choices=["DEBUG", "INFO"])


def test_shard_databases(given: Given) -> None:
    assert environment.read_shard_databases(given(None), name=NAME, shards=4) == {}
    assert environment.read_shard_databases(given("1=default, 4=far"), name=NAME, shards=4) == {1: "default", 4: "far"}


@pytest.mark.parametrize("text", ["5=far", "0=far", "1", "1=", "1=a,1=b", "1=Far", "x=far"])
def test_wrong_shard_databases_are_refused_by_name(given: Given, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is .* shards from 1 to 4"):
        environment.read_shard_databases(given(text), name=NAME, shards=4)


def test_callback_addresses(given: Given) -> None:
    assert environment.read_callback_addresses(given(None), name=NAME) == ()
    found = environment.read_callback_addresses(given("*.example.com, http://localhost:*"), name=NAME)
    assert found == (CallbackAddress("*.example.com"), CallbackAddress("localhost:*", allow_insecure=True))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is .* it is no host"):
        environment.read_callback_addresses(given("https://example.com/path"), name=NAME)


@pytest.mark.parametrize("text", [None, "", "http://localhost:8081", "https://codec.example.com/base"])
def test_web_address(given: Given, text: str | None) -> None:
    assert environment.read_web_address(given(text), name=NAME) == (text or "")


@pytest.mark.parametrize(
    "text",
    ["localhost:8081", "ftp://x", "http://", "http://a:b", "http://u:p@x", "http://x?a=1", "http://[x", "http://x:0"],
)
def test_wrong_web_address_is_refused_by_name(given: Given, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{NAME} is"):
        environment.read_web_address(given(text), name=NAME)


def test_secret_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    file = tmp_path / ".secret_key"
    key = resolve_secret_key(given="", debug=True, keep_in=file)
    assert len(key) >= 50
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert resolve_secret_key(given="", debug=True, keep_in=file) == key
    assert [entry.name for entry in tmp_path.iterdir()] == [".secret_key"]


def test_secret_key_is_one_for_all_who_start_at_once(tmp_path: Path) -> None:
    keys: set[str] = set()
    together = threading.Barrier(8)

    def start() -> None:
        together.wait()
        keys.add(resolve_secret_key(given="", debug=True, keep_in=tmp_path / ".secret_key"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 1


def test_given_secret_key_wins(tmp_path: Path) -> None:
    assert resolve_secret_key(given="mine", debug=False, keep_in=tmp_path / "none") == "mine"
    assert list(tmp_path.iterdir()) == []


def test_secret_key_is_demanded_without_debug(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY is not set; with DEBUG off"):
        resolve_secret_key(given="", debug=False, keep_in=tmp_path / ".secret_key")


def test_secret_key_that_cannot_be_kept_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY"):
        resolve_secret_key(given="", debug=True, keep_in=tmp_path / "no such folder" / ".secret_key")


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"FRONTEND_PORT": "http"}, "FRONTEND_PORT is 'http'"),
        ({"NUM_HISTORY_SHARDS": "0"}, "NUM_HISTORY_SHARDS is '0'"),
        ({"MATCHING_PARTITIONS": "many"}, "MATCHING_PARTITIONS is 'many'"),
        ({"MATCHING_QUEUE_PARTITIONS": "orders=0"}, "MATCHING_QUEUE_PARTITIONS is 'orders=0'"),
        ({"MATCHING_QUEUE_PARTITIONS": "a=2,a=3"}, "MATCHING_QUEUE_PARTITIONS is 'a=3'"),
        ({"SUGGEST_CONTINUE_AS_NEW_EVENTS": "-5"}, "SUGGEST_CONTINUE_AS_NEW_EVENTS is '-5'"),
        ({"DEBUG": "false", "SECRET_KEY": ""}, "SECRET_KEY is not set"),
        ({"DATABASE_URL": "mysql://u:pass-word@h/d"}, "DATABASE_URL must be"),
        ({"HISTORY_SHARD_DATABASES": "2=far"}, "DATABASE_URL_FAR must be"),
        ({"HISTORY_SHARD_DATABASES": "2=visibility"}, "HISTORY_SHARD_DATABASES is '2=visibility'"),
        ({"VISIBILITY_DATABASE_URL": "mysql://u:pass-word@h/d"}, "VISIBILITY_DATABASE_URL must be"),
    ],
)
def test_settings_refuse_by_name_and_show_no_password(variables: dict[str, str], complaint: str) -> None:
    variables = {"SECRET_KEY": "x", **variables}
    done = run_python(
        "-c", "import tinytemporal_site.settings", environment=_environment(**variables), expect_success=False
    )
    assert f"django.core.exceptions.ImproperlyConfigured: {complaint}" in done
    assert "pass-word" not in done


def test_dot_env_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("FRONTEND_PORT=1111\nWEB_PORT=2222\nDATABASE_URL=sqlite://:memory:\n")
    variables = _environment(ENV_FILE=str(tmp_path / "env"), WEB_PORT="3333")
    del variables["DATABASE_URL"]
    program = "from tinytemporal_site import settings as s; print(s.FRONTEND_PORT, s.WEB_PORT, s.DATABASE_URL, s.MATCHING_PORT)"
    assert run_python("-c", program, environment=variables).split() == ["1111", "3333", "sqlite://:memory:", "7235"]


def test_example_names_every_setting() -> None:
    """`.env.example` is the list of settings: each variable that the settings module reads stands there, and no other."""
    settings = (PROJECT / "tinytemporal_site" / "settings.py").read_text()
    read = set(re.findall(r'name="([A-Z_]+)"', settings)) | {"TEST_DATABASE_URL"}
    listed = set(re.findall(r"^#([A-Z_]+)=", (PROJECT / ".env.example").read_text(), flags=re.MULTILINE))
    assert read == listed


def _environment(**variables: Any) -> dict[str, str]:
    return server_environment(database_url="sqlite://:memory:", **variables) | {"PYTHONPATH": os.fspath(PROJECT)}
