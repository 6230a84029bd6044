"""A package index of tests: small wheels in a folder, served by this process."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote


def add(folder: Path, name: str, version: str, needs: Sequence[str] = ()) -> None:
    """Put a wheel into an index: one module that says its version."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {need}" for need in needs]
    files = {
        f"{name}.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": "\n".join(lines) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as made:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            made.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
    _list(place)


def remove(folder: Path, name: str, version: str) -> None:
    """Take a wheel out of an index again."""
    place = folder / name
    (place / f"{name}-{version}-py3-none-any.whl").unlink()
    _list(place)


def _list(place: Path) -> None:
    links = [
        f'<a href="{quote(each.name)}#sha256={hashlib.sha256(each.read_bytes()).hexdigest()}">'
        f"{each.name}</a>"
        for each in sorted(place.glob("*.whl"))
    ]
    (place / "index.html").write_text("\n".join(links), encoding="utf-8")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder of indexes."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **named: object) -> None:
            super().__init__(*args, directory=str(folder), **named)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
