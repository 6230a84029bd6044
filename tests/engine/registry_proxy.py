"""A proxy before the real registry that does wrong what it is told to, once for each telling.

Its ``rule`` is asked at each request, for what goes wrong again and again. With a ``login`` it
wants that as the ``Authorization`` of each request. ``askers`` are the clients of ``asked``.
"""

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, TypeAlias

# The first byte of a client that wants to speak TLS.
TLS = b"\x16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with the next request of a method.

    Shape: ``status`` 0 passes the request on, but ends the connection in the middle of the
    answer's body; -1 hangs up without asking the registry; -2 hangs up after it has acted.
    """

    method: str
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Rule: TypeAlias = Callable[[str, str], Fault | None]


def no_fault(_method: str, _path: str) -> Fault | None:
    """The rule of a proxy whose faults are all counted."""
    return None


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that hang up are part of the tests."""


class Proxy:
    """Forwards to ``upstream`` (``HOST:PORT``), after the faults are used up."""

    def __init__(
        self, upstream: str, *faults: Fault, rule: Rule = no_fault, login: str = ""
    ) -> None:
        self.upstream = upstream
        self.rule = rule
        self.login = login
        self.faults = list(faults)
        self.asked: list[str] = []
        self.askers: list[str] = []
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    def fault_for(self, method: str, path: str) -> Fault | None:
        fault = self.rule(method, path)
        if fault is not None:
            return fault
        for fault in self.faults:
            if fault.method == method:
                self.faults.remove(fault)
                return fault
        return None

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


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            # Builders try TLS first and go on without it only where HTTP is what they hear.
            if self.rfile.peek(1)[:1] == TLS:  # type: ignore[attr-defined]
                self.wfile.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                self.close_connection = True
            else:
                super().handle_one_request()

        def log_message(self, *_: object) -> None:
            """Say nothing: the requests are kept."""

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if proxy.login and self.headers.get("Authorization") != proxy.login:
                wanted = {"WWW-Authenticate": 'Basic realm="private"'}
                self.reply(401, wanted, b'{"errors": [{"code": "UNAUTHORIZED"}]}')
                return
            proxy.asked.append(f"{self.command} {self.path}")
            proxy.askers.append(self.headers.get("User-Agent", ""))
            fault = proxy.fault_for(self.command, self.path)
            if fault is None or fault.status in {0, -2}:
                self.relay(body, fault)
            elif fault.status == -1:
                self.close_connection = True
            else:
                self.reply(fault.status, fault.headers, fault.body)

        def relay(self, body: bytes, fault: Fault | None) -> None:
            upstream = http.client.HTTPConnection(proxy.upstream, timeout=20)
            headers = dict(self.headers.items())
            upstream.request(self.command, self.path, body=body or None, headers=headers)
            found = upstream.getresponse()
            payload = found.read()
            upstream.close()
            self.close_connection = fault is not None
            if fault is None or fault.status == 0:
                kept = {"content-length", "transfer-encoding", "connection"}
                named = {k: v for k, v in found.getheaders() if k.lower() not in kept}
                length = found.getheader("Content-Length") or str(len(payload))
                self.reply(found.status, {**named, "Content-Length": length}, payload, fault)

        def reply(
            self, status: int, headers: dict[str, str], body: bytes, fault: Fault | None = None
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body if fault is None else body[: len(body) // 2])

    for method in ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.pass_on)
    return Handler
