"""Our own output with hidden values blanked, whoever writes it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpulayers.secrecy import blank


class _Blanked:
    """A stream that blanks what is written to it and is in all else the one that it stands for."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.write(blank(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)


@contextlib.contextmanager
def blanked_streams() -> Iterator[None]:
    """Standard output and error blank the hidden values while this is open."""
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        # A stream that was closed before we began (`>&-`) is None here.
        open_ones = [stream or stack.enter_context(_nowhere()) for stream in before]
        sys.stdout, sys.stderr = _Blanked(open_ones[0]), _Blanked(open_ones[1])
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def _nowhere() -> IO[str]:
    return Path(os.devnull).open("w", encoding="utf-8")
