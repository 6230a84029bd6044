"""How a build is shown: a live table on a terminal, elsewhere a line when something is done."""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gpulayers.cli.tally import ENDS, Tally, clock, megabytes
from gpulayers.engine.buildx import Transfer, Vertex
from gpulayers.plan.model import Image, Plan

__all__ = ["Progress", "console", "megabytes"]

STYLES = {"built": "green", "cached": "cyan", "failed": "bold red", "not-tried": "yellow"}
# Without a terminal, so long a silence is broken by a line with all of it.
SILENCE_S = 30.0


@dataclass(slots=True)
class Progress:
    """Told by the workflow, from many threads, how each image and step goes."""

    plan: Plan
    quiet: bool
    console: Console
    in_ci: bool = field(default_factory=lambda: bool(os.environ.get("CI")))
    now: Callable[[], float] = time.monotonic
    tally: Tally = field(init=False)
    _told_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _live: Live | None = None

    def __post_init__(self) -> None:
        self._told_s = self.now()
        self.tally = Tally(plan=self.plan, begin_s=self._told_s)

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(get_renderable=self.view, console=self.console, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def state(self, image: Image, state: str, detail: str = "") -> None:
        """An image is in another state."""
        with self._lock:
            self.tally.state(image, state, detail, self.now())
            said = f"{image.tag}: {state}{f' ({detail})' if detail else ''}"
            self._tell(said if state in ENDS or detail.startswith("again") else "")

    def work(self, image: Image, vertex: Vertex) -> None:
        """A step runs, is done, or was found; the same step is told once for all images."""
        with self._lock:
            news = self.tally.work(image, vertex, self.now())
            is_told = news is not None and news[1] == "done" and not self.in_ci
            self._tell(f"step {news[0]}: done" if news is not None and is_told else "")

    def transfer(self, image: Image, transfer: Transfer) -> None:  # noqa: ARG002 - all share them
        """Bytes came for a build."""
        with self._lock:
            self.tally.transfer(transfer)
            self._tell("")

    def sent(self, image: Image, size_bytes: int) -> None:  # noqa: ARG002 - all share the registry
        """The registry has new layers."""
        with self._lock:
            self.tally.sent_bytes += size_bytes

    def _tell(self, line: str) -> None:
        """A line where there is no terminal; after a long silence, how far all of it is."""
        if self._live is not None or self.quiet:
            return
        now_s = self.now()
        if not line and now_s - self._told_s >= SILENCE_S and not self.in_ci:
            line = self.tally.overall(now_s)
        if line:
            self._told_s = now_s
            spent = f"[{now_s - self.tally.begin_s:6.1f} s]"
            self.console.print(f"{spent} {line}", markup=False, highlight=False)

    def view(self) -> Group:
        """What is under way or failed, a row each, and one line for all of it."""
        with self._lock:
            now_s = self.now()
            table = Table(box=None, pad_edge=False)
            for title in ("image", "state", "steps", "for", ""):
                table.add_column(title, no_wrap=True, overflow="ellipsis")
            for image in self.plan.images:
                shown = self.tally.images[image.target]
                if shown.state in {"building", "gates", "failed"}:
                    done, of = self.tally.steps_of(image)
                    since = "" if shown.state == "failed" else clock(now_s - shown.since_s)
                    state = Text(shown.state, style=STYLES.get(shown.state, ""))
                    table.add_row(shown.tag, state, f"{done}/{of}", since, Text(shown.detail))
            return Group(table, Text(self.tally.overall(now_s)))


def console(*, quiet: bool) -> Console:
    """Where talk goes: stderr."""
    return Console(stderr=True, quiet=quiet, file=sys.stderr, soft_wrap=True)
