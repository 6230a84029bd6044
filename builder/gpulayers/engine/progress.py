"""What a build says while it runs: ``--progress=rawjson`` as pieces of work, logs, a failure."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gpulayers.engine import process

EXIT_CODE = re.compile(r"exit code: (\d+)")
# With several targets each name gets the target's in front.
CACHE_WORK = re.compile(r"(\[[^]]*\] )?(importing cache manifest|exporting cache)")
CANCELED = "context canceled"
CLIENT_ERROR = "ERROR: "
# Stands where the name of a step would.
TIMED_OUT = "(time-out)"
MANIFEST_WORK = "pushing manifest"
SILENT = "docker buildx ended without success and without a word"
TAIL_LINES = 40
# Of each step's output and of each error, as much of the end is kept.
LOG_BYTES = 64_000
ERROR_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """One piece of work of a build: its name, and whether it ran, was cached or failed."""

    name: str
    started: bool
    cached: bool
    completed: bool
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes on their way into a builder: of one layer of a base, or of a context.

    Shape: ``vertex`` is the name of the piece of work; ``total_bytes`` is 0 where nobody knows.
    BuildKit 0.20 tells of downloads; of a push it says only that it goes on.
    """

    vertex: str
    id: str
    current_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailure:
    """The step that failed, its exit status (0: it did not end by itself), its last lines.

    Shape: ``step`` is "" where the client alone spoke; ``lines`` are never empty; ``error`` is
    what the builder, not the step, said of it; ``uploaded`` is whether a push had come as far as
    the manifest, which stands at its end.
    """

    step: str
    exit: int
    lines: tuple[str, ...]
    error: str = ""
    uploaded: bool = False


OnVertex = Callable[[Vertex], None]
OnTransfer = Callable[[Transfer], None]


class Events(Protocol):
    """Who gets everything that a build says, as it says it."""

    def take(self, event: Mapping[str, object]) -> None:
        """An event."""

    def plain(self, line: str) -> None:
        """A line that is no event."""


@dataclass(slots=True)
class Progress:
    """Reads ``--progress=rawjson`` line by line; what is not JSON is kept as plain text."""

    on_vertex: OnVertex | None = None
    events: Events | None = None
    on_transfer: OnTransfer | None = None
    uploaded: set[str] = field(default_factory=set)
    vertices: dict[str, Vertex] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    plain: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Read one line of stderr."""
        try:
            event: object = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            if line.strip():
                self.plain.append(process.redact(line.rstrip()))
                if self.events is not None:
                    self.events.plain(line.rstrip())
            return
        for item in _tables(event.get("vertexes")):
            self._take_vertex(item)
        for item in _tables(event.get("logs")):
            self._take_log(item)
        for item in _tables(event.get("statuses")):
            self._take_status(item)
        if self.events is not None:
            self.events.take(event)

    def _take_vertex(self, item: Mapping[str, object]) -> None:
        digest = str(item.get("digest", ""))
        seen = self.vertices.get(digest)
        vertex = Vertex(
            name=process.redact(str(item.get("name", ""))),
            cached=bool(item.get("cached")) or (seen is not None and seen.cached),
            started=item.get("started") is not None,
            completed=item.get("completed") is not None,
            error=str(item.get("error") or ""),
        )
        if vertex != seen:
            self.vertices[digest] = vertex
            if self.on_vertex is not None:
                self.on_vertex(vertex)

    def _take_log(self, item: Mapping[str, object]) -> None:
        try:
            data = base64.b64decode(str(item.get("data", "")))
        except ValueError:
            return
        # A piece ends where the pipe did, amid a line, a letter or a secret: they are joined first.
        vertex = str(item.get("vertex", ""))
        self.logs[vertex] = (self.logs.get(vertex, b"") + data)[-LOG_BYTES:]

    def _take_status(self, item: Mapping[str, object]) -> None:
        name, digest = str(item.get("id", "")), str(item.get("vertex", ""))
        current = _bytes(item.get("current"))
        if name.startswith(MANIFEST_WORK):
            self.uploaded.add(digest)
        vertex = self.vertices.get(digest)
        if self.on_transfer is None or vertex is None or not current:
            return
        self.on_transfer(
            Transfer(
                vertex=vertex.name,
                id=name,
                current_bytes=current,
                total_bytes=_bytes(item.get("total")),
            )
        )

    def tail(self, digest: str) -> tuple[str, ...]:
        """The last lines that a vertex wrote, redacted, without empty ones."""
        text = self.logs.get(digest, b"").decode("utf-8", errors="replace")
        lines = process.redact(text).splitlines()
        return tuple(line.rstrip() for line in lines if line.strip())[-TAIL_LINES:]

    def failure(self) -> StepFailure:
        """The first vertex with an error of its own, or what stood in plain text."""
        for digest, vertex in self.vertices.items():
            # A cache that is not there yet is reported as an error and harms nothing.
            if CACHE_WORK.match(vertex.name) or vertex.error.rstrip().endswith(CANCELED):
                continue
            if vertex.error:
                # The error begins with the whole script, which may say "exit code" too.
                codes = EXIT_CODE.findall(vertex.error)
                error = process.redact(vertex.error)
                return StepFailure(
                    step=vertex.name,
                    exit=int(codes[-1]) if codes else 0,
                    lines=(*self.tail(digest)[1 - TAIL_LINES :], _short(error)),
                    error=error,
                    uploaded=digest in self.uploaded,
                )
        return self._client_failure()

    def _client_failure(self) -> StepFailure:
        """What the client said, where no piece of work is to blame."""
        errors = [line for line in self.plain if line.startswith(CLIENT_ERROR)]
        lines = tuple(self.plain[-TAIL_LINES:]) or (SILENT,)
        return StepFailure(step="", exit=0, lines=lines, error="\n".join(errors) or lines[-1])

    def unfinished(self) -> tuple[str, ...]:
        """Names of what was under way, each with its last line."""
        return tuple(
            f"{vertex.name}: {' '.join(self.tail(digest)[-1:])}".rstrip(": ")
            for digest, vertex in self.vertices.items()
            if vertex.started and not vertex.completed
        )


def _short(error: str) -> str:
    one_line = " ".join(error.split())
    cut = len(one_line) > ERROR_CHARACTERS
    return f"… {one_line[-ERROR_CHARACTERS:]}" if cut else one_line


def _bytes(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _tables(value: object) -> list[Mapping[str, object]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
