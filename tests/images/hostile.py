"""A server on loopback that answers what a test tells it to, and keeps what it was asked."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.message import Message
from typing import Any, NamedTuple

from tests.images import images

Answers = dict[str, "Reply | Callable[[Asked], Reply]"]


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: Message
    body: bytes


class Reply(NamedTuple):
    """An answer; a body of pieces goes in chunks, and `raw` stands for all of it as it is on the line."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | Iterable[bytes] = b""
    raw: Iterable[bytes] = ()


class Server(NamedTuple):
    """A server: its host with the port, what it answers by path, and what it was asked."""

    host: str
    answers: Answers
    asked: list[Asked]
    stop: threading.Event
    scheme: str = "http"

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"{self.scheme}://{self.host}"

    def serve(self, name: str, made: images.Made, tag: str = "1") -> None:
        """Answer as a registry that holds an image."""
        for digest, blob in made.blobs.items():
            self.answers[f"/v2/{name}/blobs/{digest}"] = Reply(body=blob)
        manifest = made.blobs[made.entry["digest"]]
        self.manifest(name, manifest, images.MANIFEST, tag, made.entry["digest"])

    def manifest(self, name: str, data: bytes, media: str, *versions: str) -> None:
        """Answer with a manifest."""
        for version in versions:
            kind = {"Content-Type": media}
            self.answers[f"/v2/{name}/manifests/{version}"] = Reply(headers=kind, body=data)

    def sent(self, header: str) -> list[str]:
        """The values of a header in all requests that had it."""
        return [one.headers[header] for one in self.asked if header in one.headers]


@contextlib.contextmanager
def running(certificate: tuple[str, str] | None = None) -> Iterator[Server]:
    """A server that answers 404 until it is told otherwise."""
    answers: Answers = {}
    asked: list[Asked] = []
    stop = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            request = Asked(self.command, self.path, self.headers, self.rfile.read(size))
            asked.append(request)
            answer = answers.get(self.path.partition("?")[0], Reply(404))
            self.send(answer if isinstance(answer, Reply) else answer(request))

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the library looks for these names

        def send(self, reply: Reply) -> None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                for piece in reply.raw:
                    self.wfile.write(piece)
                if not reply.raw:
                    self.send_whole(reply)

        def send_whole(self, reply: Reply) -> None:
            self.send_response(reply.status)
            pieces = reply.body
            whole = isinstance(pieces, bytes)
            size = {"Content-Length": str(len(pieces))} if isinstance(pieces, bytes) else {}
            chunked = {} if whole else {"Transfer-Encoding": "chunked"}
            last = {"Connection": "close"}
            for name, value in {**last, **size, **chunked, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if isinstance(pieces, bytes):
                self.wfile.write(pieces)
                return
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: Any) -> None:
            pass

    class Threads(http.server.ThreadingHTTPServer):
        def get_request(self) -> tuple[Any, Any]:
            """A connection, but for one that begins to speak TLS where nobody does: it is closed."""
            line, address = super().get_request()
            line.settimeout(20)
            if certificate is None and line.recv(1, 2) == b"\x16":
                line.close()
            return line, address

        def handle_error(self, *_: Any) -> None:
            pass

    server = Threads(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    scheme = "http" if certificate is None else "https"
    try:
        yield Server(f"localhost:{server.server_port}", answers, asked, stop, scheme)
    finally:
        stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
