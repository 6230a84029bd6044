"""A small HTTP server inside a test: a script answers, and every request is kept."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came; header names in lower case; ``peer`` tells connections apart."""

    peer: int

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def login(self) -> str:
        return self.headers.get("authorization", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What to answer; ``cut`` ends the connection after that many bytes of the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


Script = Callable[[Asked], Reply | None]


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that hang up are part of the tests."""


class Server:
    """Serves a script on a free port of this machine; a reply of None hangs up without a word."""

    def __init__(self, script: Script) -> None:
        self.asked: list[Asked] = []
        self.script = script
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    def lines(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Say nothing: the requests are kept."""

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(
                peer=self.client_address[1],
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(length),
            )
            server.asked.append(asked)
            reply = server.script(asked)
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if not {"Content-Length", "content-length"} & set(reply.headers):
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body[: reply.cut])
            self.close_connection = self.close_connection or reply.cut is not None

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - their names

    return Handler
