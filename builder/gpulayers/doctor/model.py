"""One thing that was looked at, where to look, and how a program is asked."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from gpulayers.engine import process
from gpulayers.errors import ToolError
from gpulayers.scan.trivy import Run

Status = Literal["passed", "failed", "not-run"]
SHORT_S = 30.0


class Registry(Protocol):
    """What is asked of the registry that images go to."""

    def ping(self, registry: str) -> bool:
        """Whether it lets this login in."""

    def can_push(self, name: str) -> bool:
        """Whether this login may write to a repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that was looked at.

    Shape: ``not-run`` says that it could not be looked at, or is not needed for what is there;
    ``fix`` is the next thing to do, "" when passed.
    """

    name: str
    status: Status
    found: str
    wanted: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where to look.

    Shape: ``root`` is registry and path (``127.0.0.1:5000/acme``) and ``name`` the repository below
    it, both "" where there is no project; ``trivy_state`` is the folder with our own database;
    ``disk`` is measured where the engine's data is not on this machine's disk; ``host`` is what
    paths in specs are below.
    """

    registry: Registry
    root: str
    name: str
    disk: Path
    trivy_state: Path
    require_gpu: bool = False
    run: Run = process.run
    trivy: str | None = None
    devices: Path = Path("/dev")
    host: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
    total_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).total
    now: datetime | None = None


def part(name: str, *, ok: bool, found: str, wanted: str, fix: str) -> Part:
    """A thing that is as wanted or is not."""
    status: Status = "passed" if ok else "failed"
    return Part(name=name, status=status, found=found, wanted=wanted, fix="" if ok else fix)


def skipped(name: str, *, why: str, wanted: str, fix: str = "") -> Part:
    """A thing that could not be looked at, or need not be."""
    return Part(name=name, status="not-run", found=why, wanted=wanted, fix=fix)


def ask(machine: Machine, *argv: str) -> tuple[bool, str, str]:
    """Whether a program ended well, what it wrote, and its last words where it did not."""
    try:
        done = machine.run(argv, timeout_s=SHORT_S)
    except ToolError as error:
        return False, "", str(error)
    late = f"no end after {SHORT_S:.0f} s" if done.timed_out else ""
    return done.ok, done.stdout, " ".join(done.tail(2)) or late or f"exit status {done.code}"
