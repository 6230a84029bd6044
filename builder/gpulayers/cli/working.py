"""Working in a project's state folder: alone, and after whoever was killed there."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from gpulayers import documents, statelock

P = ParamSpec("P")
R = TypeVar("R")
# Folders of files that we write again and again, below the state folder.
WRITTEN = (".", "records", "render", "render/images", "inputs", "catalog")
_SCRATCH = re.compile(r"gpulayers-(?P<pid>\d+)-(?P<start>\d+)-")


def wait_option(command: Callable[P, R]) -> Callable[P, R]:
    """``--no-wait``."""
    return click.option(
        "--no-wait",
        is_flag=True,
        help="End with 5 when another gpulayers works in this project; else wait for it.",
    )(command)


@contextmanager
def alone(state: Path, command: str, *, wait: bool) -> Iterator[None]:
    """Hold the state folder, with a folder for temporary files that goes with this process.

    Raises: ToolError: another one works there, and ``wait`` is false.
    """
    with statelock.held(state, command, wait=wait, say=_say):
        sweep(state)
        before = tempfile.tempdir
        place = Path(tempfile.mkdtemp(prefix=statelock.scratch_prefix()))
        tempfile.tempdir = str(place)
        try:
            yield
        finally:
            tempfile.tempdir = before
            shutil.rmtree(place, ignore_errors=True)


def _say(text: str) -> None:
    click.echo(text, err=True)


def sweep(state: Path, *places: Path) -> None:
    """Remove what killed processes left: files half written, and their temporary folders.

    Shape: ``places`` is where temporary folders are looked for, the machine's own where none is
    named.
    """
    documents.sweep(state.parent)
    for name in WRITTEN:
        documents.sweep(state / name)
    for place in places or _temporary():
        for folder in place.glob("gpulayers-*"):
            found = _SCRATCH.match(folder.name)
            if found is not None and statelock.is_gone(
                statelock.name(found["pid"], found["start"])
            ):
                shutil.rmtree(folder, ignore_errors=True)


def _temporary() -> tuple[Path, ...]:
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    return (Path(tempfile.gettempdir()), *((Path(own),) if own else ()))
