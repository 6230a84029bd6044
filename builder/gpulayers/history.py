"""What each channel's tags pointed at, move by move, so that a move can be taken back."""

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from gpulayers import documents, record
from gpulayers.errors import ProjectError

SCHEMA = 1
FILE = "channels.json"
ASIDE = "move it aside; what the tags pointed at before is then not known here any more"
Who = Literal["build", "promote", "rollback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A channel's tag that was about to be moved.

    Shape: ``ref`` is ``HOST/REPOSITORY:TAG``; ``old`` is "" where the tag was new. It is written
    before the move, so that nothing is lost when we are killed between the two: a move whose
    ``new`` the tag never had was not made, and does no harm here.
    Units: ``time`` is UTC, ``…Z``.
    """

    time: str
    channel: str
    ref: str
    old: str
    new: str
    who: Who


def stamp(now: datetime) -> str:
    """A time as moves spell it: UTC to the microsecond, so that text sorts as time does."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class History:
    """The moves in ``channels.json`` of the state folder; many threads and processes may write."""

    path: Path

    def read(self) -> tuple[Move, ...]:
        """All moves, oldest first; none where there is no file.

        Raises: ProjectError: the file is no such list.
        """
        if not self.path.is_file():
            return ()
        try:
            document: object = json.loads(self.path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise _unreadable(self.path, str(error)) from error
        return _parse(document, self.path)

    def append(self, moves: Sequence[Move]) -> None:
        """Add moves at the end, whole or not at all."""
        with _held(self.path):
            rows = [asdict(move) for move in (*self.read(), *moves)]
            record.write(self.path, {"schema": SCHEMA, "moves": rows})

    def before(self, ref: str, digest: str) -> Move | None:
        """The last move that gave a tag what it has now, or None where none is known.

        Shape: moves back do not count: taking back twice goes back twice.
        """
        for move in reversed(self.read()):
            if (move.ref, move.new) == (ref, digest) and move.who != "rollback":
                return move
        return None

    def refs(self, channel: str) -> tuple[str, ...]:
        """Every tag that the channel ever moved, sorted."""
        return tuple(sorted({move.ref for move in self.read() if move.channel == channel}))


@contextmanager
def _held(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _parse(document: object, path: Path) -> tuple[Move, ...]:
    table = document if isinstance(document, dict) else {}
    rows = table.get("moves")
    if not isinstance(rows, list):
        raise _unreadable(path, "no list of moves")
    documents.demand_schema(table.get("schema"), SCHEMA, path=path, remedy=ASIDE)
    return tuple(_move(row if isinstance(row, dict) else {}, path) for row in rows)


def _move(row: Mapping[str, object], path: Path) -> Move:
    texts = {name: row.get(name) for name in ("time", "channel", "ref", "old", "new")}
    named = {name: value for name, value in texts.items() if isinstance(value, str)}
    for who in get_args(Who):
        if row.get("who") == who and len(named) == len(texts):
            return Move(**named, who=who)
    raise _unreadable(path, f"a move reads {json.dumps(row)[:200]}")


def _unreadable(path: Path, found: str) -> ProjectError:
    msg = f"{path}: wanted the history of the channels' tags, found something else: {found}"
    return ProjectError(msg, hint=ASIDE)
