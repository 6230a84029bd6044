"""How a build is shown: a live table on a terminal, elsewhere a line when something is done."""

import os
import sys
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from gpulayers.build import stage_of
from gpulayers.engine.buildx import Vertex
from gpulayers.plan.model import Image, Plan

STYLES = {"built": "green", "cached": "cyan", "failed": "bold red", "not-tried": "yellow"}
MB = 10**6


@dataclass(slots=True)
class Progress:
    """Told by the workflow, from many threads, how each image and step goes."""

    plan: Plan
    quiet: bool
    console: Console
    begin: float = field(default_factory=time.monotonic)
    states: dict[str, tuple[str, str]] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _live: Live | None = None

    def __post_init__(self) -> None:
        self._names = {step.stage: step.name for step in self.plan.steps}

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(self._table(), console=self.console, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            self._live.__exit__(kind, error, trace)

    def state(self, image: Image, state: str, detail: str = "") -> None:
        """An image is in another state."""
        with self._lock:
            self.states[image.target] = (state, detail)
            told = state in STYLES
            self._show(f"{image.tag}: {state}{f' ({detail})' if detail else ''}", told=told)

    def work(self, image: Image, vertex: Vertex) -> None:
        """A step runs, is done, or was found; the same step is told once for all images."""
        name = self._names.get(stage_of(vertex.name))
        if name is None or vertex.name.endswith("/out/ /"):
            return
        state = "cached" if vertex.cached else "done" if vertex.completed else "running"
        with self._lock:
            if self.steps.get(name) in {state, "done"}:
                return
            self.steps[name] = state
            if state == "running":
                self.states[image.target] = ("building", name)
            in_ci = bool(os.environ.get("CI"))
            self._show(f"step {name}: {state}", told=state == "done" and not in_ci)

    def _show(self, line: str, *, told: bool) -> None:
        if self._live is not None:
            self._live.update(self._table())
        elif told and not self.quiet:
            spent = time.monotonic() - self.begin
            self.console.print(f"[{spent:6.1f} s] {line}", markup=False, highlight=False)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for title in ("image", "state", ""):
            table.add_column(title)
        for image in self.plan.images:
            state, detail = self.states.get(image.target, ("waiting", ""))
            style = STYLES.get(state, "")
            shown = f"[{style}]{state}[/{style}]" if style else state
            table.add_row(image.tag, shown, detail)
        return table


def console(*, quiet: bool) -> Console:
    """Where talk goes: stderr."""
    return Console(stderr=True, quiet=quiet, file=sys.stderr, soft_wrap=True)


def megabytes(size_bytes: int) -> str:
    """Compressed bytes as people read them; MB = 10^6."""
    return f"{size_bytes / MB:,.1f} MB"
