"""Our own output with hidden values blanked, whoever writes it."""

import contextlib
import sys
from collections.abc import Iterator
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
    sys.stdout, sys.stderr = _Blanked(before[0]), _Blanked(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
