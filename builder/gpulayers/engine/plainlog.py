"""A build's events as lines that people read: what ran, what it said, how it ended."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpulayers.engine import process

# A step that prints without ever ending its line must not fill the memory.
LINE_BYTES = 64_000


@dataclass(slots=True)
class PlainLog:
    """Turns events of ``--progress=rawjson`` into lines, redacted, and writes each as it is whole.

    Shape: ``#3 [stage 1/2] RUN …``, then what the step said (``#3 | text``), then ``#3 DONE 1.2s``,
    ``#3 CACHED`` or ``#3 ERROR …``; numbers count the pieces of work as they begin.
    """

    write: Callable[[str], None]
    _numbers: dict[str, int] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _open: dict[str, bytes] = field(default_factory=dict)

    def take(self, event: Mapping[str, object]) -> None:
        """Read one event; what is not understood is passed over."""
        vertices = _tables(event.get("vertexes"))
        for item in vertices:
            self._begin(item)
        for item in _tables(event.get("logs")):
            self._said(item)
        for item in vertices:
            self._end(item)

    def plain(self, line: str) -> None:
        """Read a line that is no event: the client's own words."""
        self.write(process.redact(line))

    def close(self) -> None:
        """Write what was said without an end of line."""
        for digest in tuple(self._open):
            self._flush(digest)

    def _begin(self, item: Mapping[str, object]) -> None:
        digest = str(item.get("digest", ""))
        begun = item.get("started") is not None or bool(item.get("cached"))
        if begun and digest not in self._numbers:
            self._numbers[digest] = len(self._numbers) + 1
            self._line(digest, _one_line(item.get("name")))

    def _said(self, item: Mapping[str, object]) -> None:
        digest = str(item.get("vertex", ""))
        try:
            data = base64.b64decode(str(item.get("data", "")))
        except ValueError:
            return
        *lines, rest = (self._open.get(digest, b"") + data).split(b"\n")
        if len(rest) > LINE_BYTES:
            lines, rest = [*lines, rest], b""
        self._open[digest] = rest
        for line in lines:
            self._text(digest, line)

    def _end(self, item: Mapping[str, object]) -> None:
        digest = str(item.get("digest", ""))
        if item.get("completed") is None or digest in self._ended or digest not in self._numbers:
            return
        self._ended.add(digest)
        self._flush(digest)
        error = item.get("error")
        if error:
            self._line(digest, f"ERROR {_one_line(error)}")
        elif item.get("cached"):
            self._line(digest, "CACHED")
        else:
            self._line(digest, f"DONE {_seconds(item):.1f}s")

    def _flush(self, digest: str) -> None:
        rest = self._open.pop(digest, b"")
        if rest:
            self._text(digest, rest)

    def _text(self, digest: str, line: bytes) -> None:
        # Of a line that rewrote itself (a progress bar), the last state counts.
        text = line.decode("utf-8", errors="replace").rstrip("\r").rpartition("\r")[2].rstrip()
        if text:
            self._line(digest, f"| {text}")

    def _line(self, digest: str, text: str) -> None:
        self.write(process.redact(f"#{self._numbers.get(digest, 0)} {text}"))


def _one_line(value: object) -> str:
    return " ".join(str(value or "").split())


def _seconds(item: Mapping[str, object]) -> float:
    try:
        begin, end = (datetime.fromisoformat(str(item[name])) for name in ("started", "completed"))
    except (KeyError, ValueError):
        return 0.0
    return (end - begin).total_seconds()


def _tables(value: object) -> list[Mapping[str, object]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
