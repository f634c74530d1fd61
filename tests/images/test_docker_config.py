"""What Docker's files say of registries: credentials by every key, and which hosts may be asked in the clear."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.errors import ConfigError, UsageError
from toolmatrix.images import transport
from toolmatrix.images.registry import challenges, parse_reference
from toolmatrix.images.transport import Credential, DockerConfig

HUB = "https://index.docker.io/v1/"
AUTH = base64.b64encode(b"me:pass:word").decode()


def config(folder: Path, document: object) -> DockerConfig:
    """The configuration of a client."""
    (folder / "config.json").write_text(json.dumps(document))
    return DockerConfig({"DOCKER_CONFIG": str(folder)})


@pytest.mark.parametrize("key", ["a.b:1", "https://a.b:1", "https://a.b:1/v2/", "http://a.b:1/v1"])
def test_hosts_are_found_by_every_key(key: str, tmp_path: Path) -> None:
    found = config(tmp_path, {"auths": {"other": {"auth": "x"}, key: {"auth": AUTH}}})
    assert found.credential("a.b:1") == Credential("me", "pass:word")
    assert found.credential("a.b") == found.credential("b:1") == Credential()


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"username": "me", "password": "p"}, Credential("me", "p")),
        ({"auth": "", "identitytoken": "i"}, Credential(identity="i")),
        ({"registrytoken": "r"}, Credential(bearer="r")),
        ({"auth": base64.b64encode(b"me:p\0\0").decode()}, Credential("me", "p")),
        ({"auth": 1}, Credential()),
        ([], Credential()),
    ],
)
def test_entries_are_read_as_docker_writes_them(
    entry: object, wanted: Credential, tmp_path: Path
) -> None:
    assert config(tmp_path, {"auths": {HUB: entry}}).credential(HUB) == wanted


def test_a_home_without_docker_has_no_credentials(tmp_path: Path) -> None:
    assert DockerConfig({"HOME": str(tmp_path)}).credential("a.b") == Credential()
    assert DockerConfig({}).path == ".docker/config.json"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"auths": {"a.b": {"auth": "?"}}}']
)
def test_a_file_that_is_damaged_is_named_and_not_quoted(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError) as caught:
        DockerConfig({"DOCKER_CONFIG": str(tmp_path)}).credential("a.b")
    assert str(caught.value.where) == str(tmp_path / "config.json")
    assert "Error" in caught.value.found


def test_the_text_of_a_credential_shows_none_of_it() -> None:
    assert repr(Credential("me", "secret", "secret", "secret")) == "Credential(...)"


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        *((one, True) for one in ("localhost", "LOCALHOST:5000", "127.0.0.1", "127.9.9.9:80")),
        *((one, True) for one in ("[::1]", "[::1]:5000", "10.1.2.3:5000", "a.b", "a.b:1", "c.d:5")),
        *((one, False) for one in ("c.d", "c.d:6", "11.0.0.1", "localhost.evil.com", "[::2]:1")),
        *((one, False) for one in ("127.0.0.1.evil.com", "evil.com:127", "0x7f000001", "")),
    ],
)
def test_plain_http_is_for_this_machine_and_what_the_engine_is_told(
    host: str, plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "ETC", str(tmp_path))
    listed = ["10.0.0.0/8", "a.b", "c.d:5", 1, "x/y"]
    (tmp_path / "daemon.json").write_text(json.dumps({"insecure-registries": listed}))
    assert DockerConfig({}).may_be_plain(host) is plain


# Names and challenges


def test_a_name_is_parted_as_docker_parts_it() -> None:
    found = parse_reference("//a.b:5/c/d:v1@sha256:" + "0" * 64)
    assert (found.host, found.server, found.name, found.tag) == ("a.b:5", "a.b:5", "c/d", "v1")
    assert found.version == "sha256:" + "0" * 64
    assert parse_reference("localhost/a__b.c-d").version == "latest"
    assert parse_reference("[::1]:5000/a").host == "[::1]:5000"


@pytest.mark.parametrize("host", ["docker.io", "index.docker.io"])
def test_a_registry_of_several_names_is_one(host: str) -> None:
    found = parse_reference(f"//{host}/debian:12")
    assert (found.server, found.name) == (HUB, "library/debian")
    assert (found.host.partition(".")[2], parse_reference(f"{host}/a/b").name) == (
        "docker.io",
        "a/b",
    )


@given(st.text())
def test_any_text_is_a_name_or_is_refused(text: str) -> None:
    try:
        found = parse_reference(text)
    except UsageError:
        return
    assert f"{found.name}" in text


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (['Basic realm="a, b"'], {"basic": {"realm": "a, b"}}),
        (
            ['Bearer realm="https://a/t",service="s",scope="repository:a/b:pull,push"'],
            {
                "bearer": {
                    "realm": "https://a/t",
                    "service": "s",
                    "scope": "repository:a/b:pull,push",
                }
            },
        ),
        (
            ["Negotiate", 'basic realm=a, BEARER Realm="b"'],
            {"negotiate": {}, "basic": {"realm": "a"}, "bearer": {"realm": "b"}},
        ),
        ([], {}),
    ],
)
def test_challenges_are_told_apart(values: list[str], wanted: object) -> None:
    assert challenges(values) == wanted


@given(st.lists(st.text()))
def test_any_challenge_is_read(values: list[str]) -> None:
    assert isinstance(challenges(values), dict)
