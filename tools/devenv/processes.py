"""Servers that outlive the call which started them, found again by what they are."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devenv.command import tail
from devenv.talk import DevenvError

PROC = Path("/proc")
LOG_BYTES_MAX = 20_000_000
POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of this boot: the number alone may be somebody else's tomorrow."""

    pid: int
    start_ticks: int
    parent: int
    exe: str
    argv: tuple[str, ...]


def read(pid: int, proc: Path = PROC) -> Process | None:
    """What a process number stands for now; None for a gone, dead or unreadable one."""
    folder = proc / str(pid)
    try:
        # The name in brackets may hold spaces and brackets, so count from the last one.
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        argv = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        exe = str((folder / "exe").readlink())
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return Process(
        pid=pid,
        start_ticks=int(fields[19]),
        parent=int(fields[1]),
        exe=exe.removesuffix(" (deleted)"),
        argv=tuple(os.fsdecode(word) for word in argv),
    )


def every(proc: Path = PROC) -> list[Process]:
    """All processes that can be read, by number; empty where there is no /proc."""
    with suppress(OSError):
        pids = sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())
        return [process for pid in pids if (process := read(pid, proc)) is not None]
    return []


def find(program: str, config: Path, proc: Path = PROC) -> Process | None:
    """The running server of that program which was started with this configuration file."""
    for process in every(proc):
        if Path(process.exe).name == program and str(config) in process.argv:
            return process
    return None


def left_over(programs: Iterable[str], folder: Path, proc: Path = PROC) -> list[Process]:
    """Processes of these programs that work in a folder, with all their descendants."""
    everyone = every(proc)
    names, prefix = frozenset(programs), f"{folder}/"
    found = {
        process.pid: process
        for process in everyone
        if Path(process.exe).name in names and any(word.startswith(prefix) for word in process.argv)
    }
    grown = True
    while grown:
        children = [p for p in everyone if p.parent in found and p.pid not in found]
        found |= {process.pid: process for process in children}
        grown = bool(children)
    return list(found.values())


def is_alive(process: Process, proc: Path = PROC) -> bool:
    """Whether it still runs, and is not another process with the same number."""
    now = read(process.pid, proc)
    return now is not None and now.start_ticks == process.start_ticks


def stop(process: Process, *, patience_s: float) -> None:
    """End a process: asked first, killed when it has not gone in time."""
    for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 5.0)):
        if not is_alive(process):
            return
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        if wait_until(lambda: not is_alive(process), deadline_s=wait_s):
            return


def wait_until(done: Callable[[], bool], *, deadline_s: float) -> bool:
    """Whether it was done before the deadline."""
    end = time.monotonic() + deadline_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def start(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str],
    ready: Callable[[], bool],
    deadline_s: float,
) -> None:
    """Start a server in a session of its own and wait until it answers.

    Raises: DevenvError: it ended or did not answer in time; the message has its last log lines.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".old"))
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as sink:
        server = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd="/",
            start_new_session=True,
        )
    answered = False

    def settled() -> bool:
        nonlocal answered
        answered = ready()
        return answered or server.poll() is not None

    wait_until(settled, deadline_s=deadline_s)
    if not answered:
        code = server.poll()
        end = f"did not answer within {deadline_s:g} s" if code is None else f"ended with {code}"
        said = tail(log.read_bytes()[begin:].decode(errors="replace"))
        msg = f"{Path(argv[0]).name} {end}; the end of its log:\n{said}"
        if code is None:
            server.kill()
        raise DevenvError(msg, hint=f"the whole log is {log}")
    # Left alone on purpose: without this Popen warns at its end that the server still runs.
    server.returncode = 0


def server_environment(path: str) -> dict[str, str]:
    """What a server needs of our environment, and no token that happens to be in it."""
    kept = ("HOME", "LANG", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ")
    proxies = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
    names = (*kept, *proxies, *(name.upper() for name in proxies))
    return {name: os.environ[name] for name in names if name in os.environ} | {"PATH": path}
