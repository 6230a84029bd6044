"""Programs that get our own terminal: for containers that a person works in."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

from gpulayers.engine import process

# In the command line this word stands for the path of the text that is handed over.
HANDED = "@handed@"
PIECE = 1 << 16
LAST_WORDS_S = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# From a terminal these reach the program without us; a second one would be one too many.
OF_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})


def attach(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    handed: str = "",
    has_terminal: bool | None = None,
    on_error: Callable[[bytes], object] | None = None,
) -> int:
    """Run a program on our own standard input and output, and return its exit status.

    Shape: signals that we get are passed on to it; the status is 128 and the signal's number where
    one ended it. ``handed`` is a text, such as passwords, that is in no command line, environment
    or file: the program reads it from the path that takes the place of ``HANDED`` in ``argv``.
    ``on_error`` gets what it writes to standard error, which then is no terminal for it.
    Raises: ToolError: it cannot be started.
    """
    terminal = sys.stdin.isatty() if has_terminal is None else has_terminal
    with _handed_over(handed) as file, _passed_on(terminal=terminal) as pass_to:
        words = [word.replace(HANDED, f"/proc/self/fd/{file}") for word in argv]
        # A program that reads a terminal must stay in the group that the terminal belongs to.
        child = process.start_attached(
            words,
            env=env,
            own_group=not terminal,
            files=() if file < 0 else (file,),
            has_our_stderr=on_error is None,
        )
        pass_to(child.send_signal)
        with _followed(child.stderr, on_error):
            code = child.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _followed(stream: IO[bytes] | None, take: Callable[[bytes], object] | None) -> Iterator[None]:
    """Hand on what comes on a stream, as it comes, until the program has ended."""
    if stream is None or take is None:
        yield
        return

    def follow() -> None:
        with stream:
            while piece := os.read(stream.fileno(), PIECE):
                take(piece)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        # What it left running may hold the stream open for ever.
        thread.join(LAST_WORDS_S)


@contextmanager
def _handed_over(text: str) -> Iterator[int]:
    """A file without a name that holds the text; -1 for none."""
    if not text:
        yield -1
        return
    file = os.memfd_create("handed")
    try:
        os.write(file, text.encode())
        yield file
    finally:
        os.close(file)


@contextmanager
def _passed_on(*, terminal: bool) -> Iterator[Callable[[Callable[[int], None]], None]]:
    """Send the signals that come on; those that come before there is anyone wait for them."""
    waiting: list[int] = []
    targets: list[Callable[[int], None]] = []

    def take(signum: int, _: FrameType | None) -> None:
        if terminal and signum in OF_TERMINAL:
            return
        if targets:
            targets[0](signum)
        else:
            waiting.append(signum)

    def pass_to(target: Callable[[int], None]) -> None:
        targets.append(target)
        for signum in waiting:
            target(signum)

    if threading.current_thread() is not threading.main_thread():
        yield pass_to  # only the main thread is told of signals
        return
    before = {signum: signal.signal(signum, take) for signum in SIGNALS}
    try:
        yield pass_to
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
