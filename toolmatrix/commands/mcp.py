"""`toolmatrix mcp`: the questions of `cli.tools` for assistants that speak the Model Context Protocol.

Messages come on stdin and answers go to stdout, as the official SDK reads and writes them.
"""

from __future__ import annotations

from functools import partial

from toolmatrix import __version__
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.tools import OF_REQUEST, TOOLS, SessionDefaults, ToolReply, call_tool, failure
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.errors import OutputError, ToolMissing
from toolmatrix.judging.pool import WorkBounds, Worker, WorkResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mcp import types
    from mcp.server import Server

    from toolmatrix.cli.context import Context

TIMEOUT = 60
"""Seconds of an answer, where `--timeout` says nothing."""
WORKERS = 4
"""Processes that answer: a question that takes long holds up no others."""
# Seconds that a client has to list its roots.
_ROOTS = 5
_INSTRUCTIONS = """\
toolmatrix knows which versions of machine-learning tool chains work together, from sourced facts read up to {date}.
Ask it before you name a version of a framework, CUDA, ROCm, cuDNN, Python, a compiler or a driver. Its answers are yes,
no or unknown, with the evidence of each line. Pass on every part that it marks as unknown or disputed.
"""
_TIMEOUT = option(
    "--timeout",
    metavar="SECONDS",
    help="Time limit for an answer, in seconds [default: 60]",
)


@command(
    group="About this program",
    order=1,
    formats=("text",),
    request=True,
    examples=("toolmatrix mcp", "toolmatrix mcp --matrix ours.yaml --distro debian12"),
)
def run(
    context: Context,
    *,
    timeout: int | None = _TIMEOUT,
) -> int:
    """Serve coding assistants over the Model Context Protocol (stdin and stdout).

    Answer until the client is gone.
    """
    # stdin carries the messages of the protocol.
    context.piped.read_as = "the messages of a client"
    options = {
        name: context.options[name]
        for name in OF_REQUEST
        if context.options[name] != context.command.options[name].default
    }
    # The paths of the options are resolved; those of calls are not.
    defaults = SessionDefaults(
        matrix=OpenMatrix(index=context.index(), paths=context.matrices),
        options=options,
        directory=context.options.directory,
    )
    try:
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise ToolMissing(
            "`mcp` is not installed",
            expected="the SDK of the Model Context Protocol",
            help="pip install 'toolmatrix[mcp]'",
        ) from None

    import asyncio

    # Only a process can be killed at any time. Start them before the threads that read messages.
    bounds = WorkBounds(seconds=timeout or TIMEOUT)
    answering = [Worker(partial(_answer, defaults), bounds) for _ in range(WORKERS)]

    async def serve() -> None:
        mcp_server = server(defaults.matrix.date, answering)
        async with stdio_server() as (read, write):
            await mcp_server.run(read, write, mcp_server.create_initialization_options())

    try:
        asyncio.run(serve())
    except Exception as failed:
        # The SDK raises the errors of its tasks as a group.
        first = getattr(failed, "exceptions", (failed,))[0]
        if not isinstance(first, OSError):
            raise
        raise OutputError(
            "cannot communicate with the client", found=first.strerror or ""
        ) from None
    finally:
        for worker in answering:
            worker.stop()
    return 0


def _answer(
    defaults: SessionDefaults, name: str, arguments: dict[str, Any], roots: tuple[str, ...] | None
) -> ToolReply:
    return call_tool(name, arguments, defaults.replace(roots=roots))


def server(date: str, answering: Sequence[Worker]) -> Server[Any]:
    """The server of the SDK, over whatever carries its messages, for a matrix of a day."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from queue import LifoQueue

    from mcp import types
    from mcp.server import Server

    tool_list = _tool_list()
    # Each worker answers one call at a time, waited for in a thread, so that messages are read meanwhile.
    threads = ThreadPoolExecutor(len(answering))
    idle: LifoQueue[Worker] = LifoQueue()
    for worker in answering:
        idle.put(worker)

    def answer_of(*task: object) -> WorkResult:
        worker = idle.get()
        try:
            return worker.begin(*task).outcome()
        finally:
            idle.put(worker)

    async def tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return tool_list

    async def call(
        context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        roots = await _ask_roots(context.session, params)
        if isinstance(roots, types.InputRequiredResult):
            return roots
        task = (params.name, params.arguments or {}, _folders(roots))
        result = await asyncio.get_running_loop().run_in_executor(threads, answer_of, *task)
        answer: ToolReply = failure(result.error) if result.error else result.value
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=dict(answer.document),
            is_error=answer.failed,
        )

    return Server(
        "toolmatrix",
        version=__version__,
        instructions=_INSTRUCTIONS.format(date=date),
        on_list_tools=tools,
        on_call_tool=call,
    )


def _tool_list() -> types.ListToolsResult:
    from mcp import types

    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.name,
                description=tool.about,
                input_schema=tool.input_schema(),
                output_schema=tool.output_schema(),
                annotations=types.ToolAnnotations(
                    read_only_hint=True, idempotent_hint=True, open_world_hint=False
                ),
            )
            for tool in TOOLS.values()
        ]
    )


async def _ask_roots(session: Any, params: types.CallToolRequestParams) -> Any:
    """What a client lists as its roots: a result, None where it has no such list, or what a reply must ask it first."""
    import asyncio

    from mcp import types

    roots = types.ClientCapabilities(roots=types.RootsCapability())
    if not session.check_client_capability(roots):
        return None
    request = types.ListRootsRequest()
    if not session.can_send_request:
        # From 2026-07-28 on the client calls again, with the answer.
        if params.input_responses is None:
            return types.InputRequiredResult(input_requests={"roots": request})
        return params.input_responses.get("roots", types.ListRootsResult(roots=[]))
    try:
        answer = session.send_request(request, types.ListRootsResult)
        return await asyncio.wait_for(answer, _ROOTS)
    except Exception:  # noqa: BLE001 - whatever a client answers: without its list nothing is read
        return types.ListRootsResult(roots=[])


def _folders(roots: Any) -> tuple[str, ...] | None:
    """The folders in a list of roots; None without one."""
    from urllib.parse import unquote, urlsplit

    if roots is None:
        return None
    urls = [urlsplit(str(root.uri)) for root in getattr(roots, "roots", ())]
    return tuple(unquote(url.path) for url in urls if url.scheme == "file")
