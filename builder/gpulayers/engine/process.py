"""The one place that starts other programs: own process group, time-out, redaction, live lines."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpulayers.errors import ToolError

SECRET_NAME = re.compile(r"(?i)(token|secret|passw(or)?d|credential|api[-_]?key|private[-_]?key)")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)=(?P<value>\S+)")
_URL_LOGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@")
TAIL_LINES = 4000
_running: "set[subprocess.Popen[str]]" = set()
GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A program that ended.

    Shape: ``code`` is its exit status, or minus the signal that ended it; ``stdout`` and ``stderr``
    are text with undecodable bytes replaced, redacted, the last lines of ``stderr`` when it is long.
    Units: ``seconds`` is wall time.
    """

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.code == 0 and not self.timed_out

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of stderr (of stdout where stderr is empty), without empty ones."""
        text = self.stderr if self.stderr.strip() else self.stdout
        return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-lines:]


def redact(text: str) -> str:
    """Blank the values of assignments with a secret-looking name, and logins in URLs."""

    def blank(match: re.Match[str]) -> str:
        return f"{match['name']}=***" if SECRET_NAME.search(match["name"]) else match[0]

    return _URL_LOGIN.sub(r"\g<scheme>***@", _ASSIGNMENT.sub(blank, text))


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout_s: float | None = None,
    on_stderr: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end and return what it said.

    Shape: ``env`` is added to our own; ``stdin`` None is ``/dev/null``, so that nothing
    waits for a terminal; ``on_stderr`` gets each line as it comes, unredacted and without newline.
    Units: ``timeout_s`` seconds of wall time, then SIGTERM and, 5 s later, SIGKILL to its group.
    Raises: ToolError: the program is not there.
    """
    start = time.monotonic()
    with _started(argv, env=env, cwd=cwd, stdin=stdin) as process:
        out: list[str] = []
        err: deque[str] = deque(maxlen=TAIL_LINES)
        readers = [
            threading.Thread(target=_drain, args=(process.stdout, out.append), daemon=True),
            threading.Thread(
                target=_drain, args=(process.stderr, _both(err, on_stderr)), daemon=True
            ),
        ]
        for reader in readers:
            reader.start()
        _feed(process, stdin)
        timed_out = _wait(process, timeout_s)
        for reader in readers:
            reader.join(GRACE_S)
    return Finished(
        argv=tuple(argv),
        code=process.returncode,
        stdout=redact("".join(out)),
        stderr=redact("".join(f"{line}\n" for line in err)),
        seconds=time.monotonic() - start,
        timed_out=timed_out,
    )


@contextlib.contextmanager
def _started(
    argv: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path | None, stdin: str | None
) -> Iterator[subprocess.Popen[str]]:
    try:
        process = subprocess.Popen(
            list(argv),
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        msg = f"cannot start {argv[0]}: {error.strerror}"
        raise ToolError(msg, hint=f"install {argv[0]} or put its folder on PATH") from error
    _running.add(process)
    try:
        yield process
    finally:
        _running.discard(process)
        end(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _drain(stream: IO[str] | None, take: Callable[[str], object]) -> None:
    if stream is None:
        return
    with contextlib.suppress(ValueError):  # closed under us after a kill
        for line in stream:
            take(line)


def _both(tail: "deque[str]", on_line: Callable[[str], None] | None) -> Callable[[str], None]:
    def take(line: str) -> None:
        tail.append(line.rstrip("\n"))
        if on_line is not None:
            on_line(line.rstrip("\n"))

    return take


def _feed(process: "subprocess.Popen[str]", stdin: str | None) -> None:
    if stdin is None or process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError):  # it ended without reading; its status tells why
        process.stdin.write(stdin)
        process.stdin.close()


def _wait(process: "subprocess.Popen[str]", timeout_s: float | None) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        end(process)
        return True
    return False


def end(process: "subprocess.Popen[str]") -> None:
    """End a program and its children: SIGTERM to the group, SIGKILL after a grace time."""
    if process.poll() is not None:
        return
    for signum, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return


def end_all() -> None:
    """End everything that is running, from whichever thread it was started: for interrupts."""
    for process in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
