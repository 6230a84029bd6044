"""The kept logs of builds: one file an image, written while it is built."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal, get_args

from gpulayers.engine import process
from gpulayers.engine.plainlog import PlainLog
from gpulayers.engine.progress import CACHE_WORK

FOLDER = "logs"
MARK = "gpulayers:"
Status = Literal["built", "failed", "unfinished"]
_END = re.compile(rf"^{MARK} (?P<status>built|failed)(?: (?P<detail>.*))?$")
_NUMBER = re.compile(r"^#(?P<number>\d+) (?P<text>.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A log that is there.

    Shape: ``detail`` is the digest, or the step that failed; of one that is still written, or
    whose writer was killed, the status is ``unfinished``.
    Units: ``written`` is UTC.
    """

    tag: str
    path: Path
    status: Status
    detail: str
    size_bytes: int
    written: datetime


class Log:
    """The log of a build that is going on; that it cannot be written stops no build."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file
        self.events = PlainLog(self.line)

    def line(self, text: str) -> None:
        """Write one line."""
        if self._file is None:
            return
        try:
            self._file.write(f"{text}\n")
            self._file.flush()
        except (OSError, ValueError):
            self._file = None

    def end(self, status: Literal["built", "failed"], detail: str) -> None:
        """Write how it ended."""
        self.events.close()
        self.line(process.redact(f"{MARK} {status} {' '.join(detail.split())}".rstrip()))


@contextmanager
def keep(folder: Path | None, tag: str, title: str) -> Iterator[Log]:
    """Begin the log of an image anew; without a folder, nothing is kept."""
    file = None
    if folder is not None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            file = (folder / f"{tag}.log").open("w", encoding="utf-8")
    log = Log(file)
    log.line(f"{MARK} {title}")
    try:
        yield log
    finally:
        if file is not None:
            with suppress(OSError):
                file.close()


def find(folder: Path) -> tuple[Kept, ...]:
    """All logs, sorted by tag."""
    return tuple(_kept(path) for path in sorted(folder.glob("*.log")))


def _kept(path: Path) -> Kept:
    status: Status = "unfinished"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    end = _END.match(lines[-1]) if lines else None
    if end is not None:
        status = next(word for word in get_args(Status) if word == end["status"])
    about = path.stat()
    return Kept(
        tag=path.stem,
        path=path,
        status=status,
        detail=(end["detail"] or "") if end is not None else "",
        size_bytes=about.st_size,
        written=datetime.fromtimestamp(about.st_mtime, UTC),
    )


def failed_part(text: str) -> str:
    """The lines of what failed, and our own; everything where nothing did."""
    lines = text.splitlines()
    numbered = [(match["number"], match["text"]) for x in lines if (match := _NUMBER.match(x))]
    # A cache that is not there yet is reported as an error and harms nothing.
    harmless = {number for number, said in numbered if CACHE_WORK.match(said)}
    failed = {number for number, said in numbered if said.startswith("ERROR ")} - harmless
    if not failed:
        return text
    shown = [x for x in lines if not (m := _NUMBER.match(x)) or m["number"] in failed]
    return "".join(f"{line}\n" for line in shown)
