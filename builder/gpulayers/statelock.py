"""One at a time in a project's state folder: who holds it, and waiting for them to be done."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from gpulayers.errors import ToolError

FILE = "lock"
POLL_S = 0.1
Say = Callable[[str], None]


@contextmanager
def held(state: Path, command: str, *, wait: bool, say: Say) -> Iterator[None]:
    """Hold a state folder against other processes, which may be anywhere on this machine.

    Shape: ``say`` hears, once, whom we wait for. The kernel lets go when this process ends,
    however it ends.
    Raises: ToolError: another one holds it, and ``wait`` is false.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / FILE).open("a+", encoding="utf-8") as file:
        if not _is_taken(file):
            _refuse_or_say(state, file, wait=wait, say=say)
            while not _is_taken(file):
                time.sleep(POLL_S)
        _sign(file, command)
        try:
            yield
        finally:
            file.truncate(0)


def owner(pid: int | None = None) -> str:
    """This process, or one of this machine, as ``is_gone`` knows it again: ``HOST/PID/START``."""
    number = os.getpid() if pid is None else pid
    return name(str(number), _start(number))


def name(pid: str, start: str) -> str:
    """A process of this machine by number and start."""
    return f"{socket.gethostname()}/{pid}/{start}"


def scratch_prefix() -> str:
    """How names of this process's temporary folders begin."""
    return f"gpulayers-{os.getpid()}-{_start(os.getpid())}-"


def is_gone(text: str) -> bool:
    """Whether a process is known to have ended: never of another machine's, nor of no process's."""
    host, _, rest = text.partition("/")
    number, _, start = rest.partition("/")
    if host != socket.gethostname() or not number.isdigit() or not start:
        return False
    return _start(int(number)) != start


def _start(pid: int) -> str:
    """When a process began, in the kernel's own count; "" where there is none of that number."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # Source: proc(5): field 22; the second one, a name in brackets, may hold blanks.
    return text.rpartition(")")[2].split()[19]


def _is_taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: IO[str], command: str) -> None:
    file.truncate(0)
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump({"pid": os.getpid(), "since": since, "command": command}, file)
    file.flush()


def _refuse_or_say(state: Path, file: IO[str], *, wait: bool, say: Say) -> None:
    msg = f"{_holder(file)} works in {state}"
    if not wait:
        raise ToolError(msg, hint="wait for it to end, or leave --no-wait out")
    say(f"{msg}: waiting for it to end")


def _holder(file: IO[str]) -> str:
    """Who holds it, by what they wrote there; they may be about to write it."""
    file.seek(0)
    try:
        found: object = json.loads(file.read())
    except ValueError:
        found = None
    table = found if isinstance(found, dict) else {}
    if not table:
        return "another gpulayers"
    command, pid, since = (str(table.get(name, "?")) for name in ("command", "pid", "since"))
    return f"another `gpulayers {command}` (process {pid}, since {since})"
