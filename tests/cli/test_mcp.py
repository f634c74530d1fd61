"""`toolmatrix mcp`: the SDK's own client asks a real server over its stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import matrix
from tests.cli.test_tools import LOG, REQUIREMENTS, SAME
from toolmatrix.cli.tools import TOOLS

if TYPE_CHECKING:
    from mcp import Client

    from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]


def test_without_the_sdk_it_is_named(real: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    asked = real("mcp")
    assert (asked.code, asked.out) == (5, "")
    assert asked.err.splitlines() == [
        "error[TM500]: `mcp` is not installed",
        "  expected: the SDK of the Model Context Protocol",
        "help: pip install 'toolmatrix[mcp]'",
    ]


def test_stdin_is_for_messages_alone(real: Cli) -> None:
    asked = real("mcp", "--matrix", "-")
    assert asked.code == 2
    assert asked.err.splitlines() == [
        "error[TM901]: only one thing can be read from stdin",
        "  expected: `-` once",
        "  found: the messages of a client and a matrix",
        "help: put one of the two in a file",
    ]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_a_client_that_cannot_be_told_is_said(cache: str) -> None:
    ping = b'no message\n{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "toolmatrix", "mcp"],
            env={"XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)},
            input=ping,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.decode().splitlines() == [
        "error[TM905]: cannot communicate with the client",
        "  found: No space left on device",
    ]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_the_client_of_the_sdk_is_answered(real: Cli, cache: str, here: Path) -> None:
    asyncio.run(asyncio.wait_for(_asked(real, cache, here), 120))


async def _asked(real: Cli, cache: str, here: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolmatrix", "mcp", "-C", str(here), "--distro", "debian12", "--timeout", "8"],
        env={"XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)},
    )
    # Reading it would take days.
    (here / "endless.log").touch()
    os.truncate(here / "endless.log", 1 << 42)
    copies = {path: str(shutil.copy(path, here)) for path in (LOG, REQUIREMENTS)}
    async with Client(stdio_client(command)) as client:
        assert client.server_info
        assert client.server_info.name == "toolmatrix"
        assert matrix.index().header["date"] in (client.instructions or "")
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(TOOLS)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)
        # The client holds each answer to the schema that the server gave.
        for name, (arguments, words) in SAME.items():
            own = ["--distro", "debian12"] if "distro" in TOOLS[name].options else []
            given = {
                key: copies.get(value, value) if isinstance(value, str) else value
                for key, value in arguments.items()
            }
            asked = [copies.get(word, word) for word in words]
            await _is_the_command(real, client, name, given, [*asked, *own])
        refused = await client.call_tool("resolve", {"request": ["tensorfow"]})
        assert refused.is_error
        assert _text(refused).startswith("error[TM110]: unknown component `tensorfow`\n")
        assert refused.structured_content["error"]["code"] == "TM110"
        # Questions at once wait for no other, and none for one that never ends.
        logs = ("endless.log", copies[LOG], copies[LOG])
        endless, *both = await asyncio.gather(
            *(client.call_tool("diagnose", {"log": one}) for one in logs)
        )
        assert _text(endless).startswith("error[TM908]: it takes longer than 8 seconds\n")
        assert endless.is_error
        assert _text(both[0]) == _text(both[1]) != ""
        assert not both[0].is_error


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_hostile_questions_are_refused_and_a_hundred_at_once_answered(
    mode: Any, cache: str, tmp_path: Path
) -> None:
    asyncio.run(asyncio.wait_for(_refused(mode, cache, tmp_path), 120))


async def _refused(mode: Any, cache: str, folder: Path) -> None:
    from mcp import Client, StdioServerParameters, types
    from mcp.client.stdio import stdio_client
    from pydantic import FileUrl

    root = folder / "a root"
    root.mkdir()
    os.mkfifo(root / "fifo")
    (root / "zero").symlink_to("/dev/zero")
    for place in (root, folder):
        (place / "build.log").write_text("a line\n")

    async def roots(context: Any) -> types.ListRootsResult:  # noqa: ARG001 - the name of the SDK
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(root.as_uri()))])

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolmatrix", "mcp", "-C", str(folder)],
        env={"XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)},
    )
    async with Client(stdio_client(command), list_roots_callback=roots, mode=mode) as client:
        log = {"log": "a root/build.log"}
        answers = await asyncio.gather(*(client.call_tool("diagnose", log) for _ in range(100)))
        assert {(one.is_error, _text(one)) for one in answers} == {(False, _text(answers[0]))}
        foreign = ("build.log", "/dev/zero", "a root/zero", "/etc/passwd")
        for path in (*foreign, "a root/fifo"):
            for name, arguments in (
                ("diagnose", {"log": path}),
                ("resolve", {"request": ["torch"], "recipe": os.path.join(".", path)}),
                ("resolve", {"request": ["torch"], "keep": path}),
            ):
                answer = await client.call_tool(name, arguments)
                assert answer.is_error
                why = "may not read this file" if path in foreign else "cannot"
                assert why in _text(answer), path


async def _is_the_command(
    real: Cli, client: Client, name: str, arguments: dict[str, Any], words: list[str]
) -> None:
    answer = await client.call_tool(name, arguments)
    command = name.replace("_", "-")
    assert not answer.is_error
    assert _text(answer) == real(command, *words).out
    assert answer.structured_content == real(command, *words, "--json").json()


def _text(answer: Any) -> str:
    [content] = answer.content
    return str(content.text)
