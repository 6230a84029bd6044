"""What is remembered from one `up` to the next: state, environment file, lock."""

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from devenv.command import inherited
from devenv.layout import Layout
from devenv.talk import DevenvError, say

LOOPBACK = "127.0.0.1"


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def read_state(layout: Layout) -> dict[str, str]:
    """What the last `up` remembered; empty where there is nothing readable."""
    try:
        data: object = json.loads((layout.engine / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(key): str(value) for key, value in data.items()}


def remember(layout: Layout, **facts: str) -> None:
    """Add facts to the state file."""
    state = read_state(layout) | facts
    text = json.dumps(state, indent=2, sort_keys=True) + "\n"
    write_atomically(layout.engine / "state.json", text)


def format_env(values: Mapping[str, str]) -> str:
    """The environment file: one KEY=VALUE a line, sorted, nothing quoted."""
    for key, value in values.items():
        if "\n" in value:
            msg = f"{key} has a line break in its value {value!r}"
            raise DevenvError(msg, hint="move the checkout to a folder with a plain name")
    return "".join(f"{key}={value}\n" for key, value in sorted(values.items()))


def parse_env(text: str) -> dict[str, str]:
    """The pairs of an environment file; lines without `=` are not pairs."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value for key, sign, value in pairs if sign}


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Go's listeners do: a port that only waits out old connections counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that the kernel says is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def choose_port(
    kept: str,
    *,
    free: Callable[[int], bool] = is_free,
    new: Callable[[], int] = free_port,
) -> int:
    """The port kept from before where it is a usable, free one, else a new one."""
    if kept.isascii() and kept.isdigit() and 0 < int(kept) < 2**16 and free(int(kept)):
        return int(kept)
    return new()


@contextmanager
def lock(layout: Layout) -> Iterator[None]:
    """Hold the checkout: a second `up`, `down` or `clean` waits here."""
    layout.engine.mkdir(parents=True, exist_ok=True)
    path = layout.engine / "lock"
    handle = _locked(path)
    try:
        with inherited(handle):
            yield
    finally:
        os.close(handle)


def _locked(path: Path) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("lock", "waiting", "another call is at work in this checkout")
            fcntl.flock(handle, fcntl.LOCK_EX)
        # `clean` removes the file while others wait on it: a lock on that is held by nobody else.
        if path.exists() and os.fstat(handle).st_ino == path.stat().st_ino:
            return handle
        os.close(handle)
