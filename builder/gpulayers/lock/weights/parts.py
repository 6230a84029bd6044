"""A file that is being fetched: written at its end, until it is whole or somebody says stop."""

import errno
import io
import threading
from pathlib import Path

from gpulayers.errors import RemoteError, ToolError


class StoppedError(RemoteError):
    """Fetching was stopped from outside; what came so far stays."""


class Part(io.BufferedRandom):
    """The file as its writer sees it: at its end, and refusing to write on once it is stopped.

    Raises: StoppedError: at the next write after a stop; ToolError: the disk is full.
    """

    def __init__(self, path: Path, stop: threading.Event) -> None:
        super().__init__(io.FileIO(path, "r+"))
        self._stop = stop
        self.seek(0, io.SEEK_END)

    def write(self, data: bytes, /) -> int:  # type: ignore[override] # bytes are all that comes
        """Write on, and to the disk at once: a program that is killed loses little."""
        if self._stop.is_set():
            msg = "fetching was stopped"
            raise StoppedError(msg, hint="the next build goes on where this one stopped")
        try:
            written = super().write(data)
            self.flush()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            msg = f"too little disk: it became full while {self.name} was fetched"
            raise ToolError(
                msg, hint="make room: the next build goes on where it stopped"
            ) from error
        return written
