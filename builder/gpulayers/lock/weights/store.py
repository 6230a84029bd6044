"""Files of models by their hash: each is fetched once for all images, goes on where it stopped."""

import contextlib
import fcntl
import hashlib
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gpulayers.errors import ProjectError, RemoteError, ToolError
from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.weights.parts import StoppedError

AT_ONCE = 4
MB = 10**6
Say = Callable[[str], None]


class Carrier(Protocol):
    """Whatever brings the bytes of a model's file."""

    def bring(self, model: LockedModel, file: LockedFile, part: Path) -> None:
        """Write what is missing of a file to the end of ``part``, which may hold its start.

        Raises: RemoteError: the source did not answer, or denied it; what came stays in ``part``.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of files by hash, ``sha256/HEX``; what is not whole yet is ``HEX.part``.

    Shape: once ``stop`` is set, nothing more is written.
    """

    folder: Path
    stop: threading.Event = field(default_factory=threading.Event, compare=False)

    def path(self, file: LockedFile) -> Path:
        """Where a file is, or will be."""
        return self.folder / "sha256" / file.sha256

    def has(self, file: LockedFile) -> bool:
        """Whether a file is here; it came in by its hash, and only its size is looked at again."""
        path = self.path(file)
        return path.is_file() and path.stat().st_size == file.size_bytes

    def part(self, name: str) -> Path:
        """Where a file is written until it is whole."""
        path = self.folder / "sha256" / f"{name}.part"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def take_in(self, part: Path) -> str:
        """Put a whole file under its hash, in one move, and return that."""
        with part.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
        part.chmod(0o444)
        part.replace(part.with_name(sha256))
        return sha256

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from fetching into this folder: they find all here afterwards."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w", encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield


def fetch(models: Sequence[LockedModel], store: Store, carriers: "Carriers", say: Say) -> None:
    """Have all files of these models in the store.

    Raises: RemoteError: a source did not answer, or a file is not what the lock says;
        ToolError: too little disk.
    """
    if not _missing(models, store):
        return
    store.stop.clear()
    with store.alone():
        missing = _missing(models, store)
        total = sum(file.size_bytes for _, file in missing)
        if not missing:
            return
        _demand_space(store, missing)
        say(f"models: fetching {len(missing)} files, {megabytes(total)}")
        _fetch_all(missing, store, carriers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carriers:
    """Who brings the files of a source, by the word before its colon."""

    by_kind: dict[str, Carrier]

    def of(self, model: LockedModel) -> Carrier:
        """The carrier of a model.

        Raises: ProjectError: the lock names a source of another kind.
        """
        kind, _, _ = model.source.partition(":")
        if kind not in self.by_kind:
            msg = f"model {model.name}: no source is of the kind {kind!r}"
            raise ProjectError(msg, hint="run: gpulayers lock")
        return self.by_kind[kind]


def megabytes(size_bytes: int) -> str:
    """Bytes for people."""
    return f"{size_bytes / MB:,.0f} MB" if size_bytes >= 10 * MB else f"{size_bytes:,} bytes"


def _missing(
    models: Sequence[LockedModel], store: Store
) -> tuple[tuple[LockedModel, LockedFile], ...]:
    found = {
        file.sha256: (model, file)
        for model in models
        for file in model.files
        if not store.has(file)
    }
    return tuple(found.values())


def _demand_space(store: Store, missing: Sequence[tuple[LockedModel, LockedFile]]) -> None:
    parts = {store.part(file.sha256): file.size_bytes for _, file in missing}
    here = sum(part.stat().st_size for part in parts if part.is_file())
    total = max(0, sum(parts.values()) - here)
    free = shutil.disk_usage(store.folder).free
    if free < total:
        wanted = f"{megabytes(total)} for the files of models"
        msg = f"too little disk: wanted {wanted}, found {megabytes(free)} free in {store.folder}"
        raise ToolError(msg, hint='a larger disk, fewer images (--only), or place = "reference"')


def _fetch_all(
    missing: Sequence[tuple[LockedModel, LockedFile]], store: Store, carriers: Carriers
) -> None:
    """Fetch some at once; the first that fails stops the others, and Ctrl-C waits for none."""
    waiting = deque(missing)
    troubles: list[Exception] = []

    def work() -> None:
        while waiting and not store.stop.is_set():
            with contextlib.suppress(IndexError, StoppedError):
                model, file = waiting.popleft()
                try:
                    _fetch_one(model, file, store, carriers)
                except StoppedError:
                    raise
                except Exception as error:  # noqa: BLE001 - raised below, in the caller's thread
                    troubles.append(error)
                    store.stop.set()

    # Daemons: one that waits for an answer must not keep the program from ending.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_ONCE)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        store.stop.set()
        raise
    if troubles:
        raise troubles[0]


def _fetch_one(model: LockedModel, file: LockedFile, store: Store, carriers: Carriers) -> None:
    part = store.part(file.sha256)
    resumed = part.is_file()
    found = _brought(model, file, part, store, carriers)
    if found != file.sha256 and resumed:
        # The start may have been of something else.
        found = _brought(model, file, part, store, carriers)
    if found != file.sha256:
        msg = (
            f"model {model.name}: {file.name} of {model.source} at {model.revision}: wanted sha256 "
            f"{file.sha256}, found {found}"
        )
        hint = (
            "the file was changed at the same revision, or by what stands between: ask its owner; "
            "`gpulayers lock` takes what is there now"
        )
        raise RemoteError(msg, hint=hint)


def _brought(
    model: LockedModel, file: LockedFile, part: Path, store: Store, carriers: Carriers
) -> str:
    """Fetch a file and put it into the store if it is the right one; the hash that it has."""
    if part.is_file() and part.stat().st_size > file.size_bytes:
        part.unlink()
    part.touch()
    if part.stat().st_size < file.size_bytes:
        carriers.of(model).bring(model, file, part)
    with part.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found == file.sha256:
        part.chmod(0o444)
        part.replace(store.path(file))
    else:
        part.unlink()
    return found
