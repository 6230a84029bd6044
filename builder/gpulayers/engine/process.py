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
from gpulayers.secrecy import blank, hide, is_secret

# NAME= and, in JSON, "NAME": ". A name starts where no other one ends and is never tried again
# shorter: logs have lines of a megabyte.
_NAME = re.compile(r"""(?<![\w.-])(?P<name>[\w.-]++)(?:=|(?P<json>"\s*:\s*"))""", re.ASCII)
_VALUE = re.compile(r"""(?P<quote>["']).*?(?P=quote)|(?:\\.|[^\s"'])*""")
_JSON_VALUE = re.compile(r'(?:\\.|[^"\\])*')
_AUTHORIZATION = re.compile(r"(?i)(?P<word>authorization\s*[:=]\s*(basic\s|bearer\s)?\s*)[^\s\"']+")
_URL_LOGIN = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}://)[^/\s]{1,4096}@")
TAIL_LINES = 4000
_running: "set[subprocess.Popen[str]]" = set()
_stopped = threading.Event()
_tidying = threading.local()
GRACE_S = 5.0
STOP_GRACE_S = 3.0
LEFTOVERS_S = 0.3  # one that nobody reaps looks alive to us


class StoppedError(ToolError):
    """A program was not started, because everything is being stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A program that ended.

    Shape: ``code`` is its exit status, or minus the signal that ended it; ``stdout`` and ``stderr``
    are text with undecodable bytes replaced, redacted; of a long ``stderr`` the last lines.
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
    """Blank known secrets, the values of assignments with a secret-looking name, logins in URLs.

    Shape: JSON stays JSON. A value ends at a blank or quote; ``redact_word`` knows better.
    """
    text = blank(text)
    parts: list[str] = []
    done = 0
    for match in _NAME.finditer(text):
        if match.start() < done or not is_secret(match["name"]):
            continue
        value = (_JSON_VALUE if match["json"] else _VALUE).match(text, match.end())
        parts += [text[done : match.end()], "***"]
        done = match.end() if value is None else value.end()
    blanked = "".join([*parts, text[done:]])
    blanked = _AUTHORIZATION.sub(r"\g<word>***", blanked)
    return _URL_LOGIN.sub(r"\g<scheme>***@", blanked)


def redact_word(word: str) -> str:
    """A word of a command line with the same blanked; a secret's value goes on to its end."""
    for match in _NAME.finditer(word):
        if is_secret(match["name"]):
            return f"{redact(word[: match.start()])}{match[0]}***"
    return redact(word)


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
    Raises: ToolError: the program cannot be started; and what ``on_stderr`` raised, in the end.
    """
    start = time.monotonic()
    out: list[str] = []
    err: deque[str] = deque(maxlen=TAIL_LINES)
    faults: list[Exception] = []
    with _started(argv, env=env, cwd=cwd, stdin=stdin) as process:
        # Reading and writing go on beside the wait: a full pipe would stop the program for ever.
        workers = [
            _thread(_drain, process.stdout, out.append),
            _thread(_drain, process.stderr, _both(err, on_stderr, faults)),
            _thread(_feed, process.stdin, stdin),
        ]
        timed_out = _wait(process, timeout_s)
        end(process)  # children that it left would hold the pipes open
        for worker in workers:
            worker.join(GRACE_S)
    if faults:
        raise faults[0]
    return Finished(
        argv=tuple(argv),
        code=process.returncode,
        stdout=redact("".join(out)),
        stderr=redact("".join(f"{line}\n" for line in err)),
        seconds=time.monotonic() - start,
        timed_out=timed_out,
    )


def ask_secret(argv: Sequence[str], *, timeout_s: float) -> str:
    """What a program prints, hidden from now on; "" where it does not end well or in time."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    value = done.stdout.strip() if done.returncode == 0 else ""
    hide(value)
    return value


def _thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


@contextlib.contextmanager
def _started(
    argv: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path | None, stdin: str | None
) -> Iterator[subprocess.Popen[str]]:
    tidies = getattr(_tidying, "on", False)
    if _stopped.is_set() and not tidies:
        msg = f"{argv[0]} was not started: everything is being stopped"
        raise StoppedError(msg)
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
    except OSError as error:  # also another machine's binary, or a folder that is not there
        raise _not_started(argv, error, cwd) from error
    if not tidies:
        _running.add(process)
        if _stopped.is_set():  # in between: ``stop`` did not see it
            _signal(process, signal.SIGTERM)
    try:
        yield process
    finally:
        _running.discard(process)
        if process.poll() is None:  # interrupted
            end(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _not_started(argv: Sequence[str], error: OSError, cwd: Path | None) -> ToolError:
    msg = f"cannot start {argv[0]}: {error.strerror}"
    if cwd is not None and not cwd.is_dir():
        return ToolError(msg, hint=f"it was to start in {cwd}, which is no folder")
    return ToolError(msg, hint=f"install {argv[0]} or put its folder on PATH")


def start_attached(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    own_group: bool,
    files: Sequence[int] = (),
    has_our_stderr: bool = True,
) -> "subprocess.Popen[bytes]":
    """Start a program on our own standard streams; ``files`` are ours that it may read too.

    Shape: without ``has_our_stderr`` what it says of errors comes to us as a stream.

    Raises: ToolError: it cannot be started.
    """
    try:
        return subprocess.Popen(
            list(argv),
            env={**os.environ, **(env or {})},
            pass_fds=tuple(files),
            stderr=None if has_our_stderr else subprocess.PIPE,
            process_group=0 if own_group else None,
        )
    except OSError as error:
        raise _not_started(argv, error, None) from error


def _drain(stream: IO[str] | None, take: Callable[[str], object]) -> None:
    if stream is None:
        return
    with contextlib.suppress(ValueError):  # closed under us after a kill
        for line in stream:
            take(line)


def _both(
    tail: "deque[str]", on_line: Callable[[str], None] | None, faults: list[Exception]
) -> Callable[[str], None]:
    def take(line: str) -> None:
        tail.append(line.rstrip("\n"))
        if on_line is None or faults:
            return
        try:
            on_line(line.rstrip("\n"))
        except Exception as error:  # noqa: BLE001 - ``run`` raises it again; reading must go on
            faults.append(error)

    return take


def _feed(stream: IO[str] | None, text: str | None) -> None:
    if stream is None or text is None:
        return
    # It ended without reading, or was closed under us; its status tells why.
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.close()


def _wait(process: "subprocess.Popen[str]", timeout_s: float | None) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return True
    return False


def end(process: "subprocess.Popen[str]") -> None:
    """End a program and its children: SIGTERM to the group, SIGKILL after a grace time."""
    if process.poll() is None and _signal(process, signal.SIGTERM):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    if process.poll() is None:
        _signal(process, signal.SIGKILL)
        process.wait()
    _end_leftovers(process)


def _end_leftovers(process: "subprocess.Popen[str]") -> None:
    """End what is left of the group when its first process is gone."""
    until = time.monotonic() + LEFTOVERS_S
    is_left = _signal(process, signal.SIGTERM)
    while is_left and time.monotonic() < until:
        time.sleep(0.01)
        is_left = _signal(process, 0)
    if is_left:
        _signal(process, signal.SIGKILL)


def _signal(process: "subprocess.Popen[str]", signum: int) -> bool:
    """Whether there was anything left in the group to get the signal."""
    try:
        os.killpg(process.pid, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_all() -> None:
    """Ask everything that is running to end, from whichever thread it was started."""
    for process in tuple(_running):
        _signal(process, signal.SIGTERM)


def stop() -> None:
    """End everything that is running, by force where asking does not help; start nothing more.

    What is started inside ``tidying`` is left alone. Returns at once: for handlers of signals.
    """
    _stopped.set()
    end_all()
    timer = threading.Timer(STOP_GRACE_S, _kill_stopped)
    timer.daemon = True
    timer.start()


def _kill_stopped() -> None:
    if _stopped.is_set():
        kill_all()


def kill_all() -> None:
    """End everything that is running at once."""
    for process in tuple(_running):
        _signal(process, signal.SIGKILL)


def resume() -> None:
    """Let programs be started again after ``stop``."""
    _stopped.clear()


@contextlib.contextmanager
def tidying() -> Iterator[None]:
    """This thread may start programs even after ``stop``, and they are not stopped."""
    before = getattr(_tidying, "on", False)
    _tidying.on = True
    try:
        yield
    finally:
        _tidying.on = before
