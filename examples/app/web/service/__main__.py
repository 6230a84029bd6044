"""Serve until SIGTERM: /healthy, /sum?n=…, and /jq for what the OS's package says of itself."""

import argparse
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from urllib.parse import parse_qs, urlsplit

import fastsum
import orjson


def answer(path: str) -> dict[str, object] | None:
    """What a path says; None where there is nothing."""
    url = urlsplit(path)
    match url.path:
        case "/healthy":
            return {"ok": True}
        case "/sum":
            count = int(parse_qs(url.query).get("n", ["10"])[0])
            return {"sum": fastsum.total([float(number) for number in range(count)])}
        case "/jq":
            argv = ["jq", "--raw-output", ".greeting"]
            text = orjson.dumps({"greeting": os.environ["SERVICE_GREETING"]})
            said = subprocess.run(argv, input=text, capture_output=True, check=True).stdout
            return {"jq": said.decode().strip()}
        case _:
            return None


class Handler(BaseHTTPRequestHandler):
    """Answers GET with JSON."""

    def do_GET(self) -> None:
        """Answer one request."""
        found = answer(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(orjson.dumps(found))

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: health checks come every few seconds."""


def end(_: int, __: FrameType | None) -> None:
    """End well on SIGTERM."""
    sys.exit(0)


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8080)
    port = parser.parse_args().port
    signal.signal(signal.SIGTERM, end)
    print(f"serving on port {port}", flush=True)
    ThreadingHTTPServer(("", port), Handler).serve_forever()


main()
