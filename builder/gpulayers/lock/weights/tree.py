"""What a build is handed of a fetched model: its files in groups, each group a layer."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.weights.store import Store

CHECK = "check"
MB = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files that share a step; ``key`` is over their names and hashes."""

    key: str
    files: tuple[LockedFile, ...]

    @property
    def size_bytes(self) -> int:
        """What they weigh together."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A folder for a build: one folder a group, called by its key, and the check's file.

    Shape: ``name`` is the folder's; what it holds is known by it.
    """

    name: str
    groups: tuple[Group, ...]
    check: Path | None


def plan(model: LockedModel, *, layer_mb: int, most: int, check: Path | None) -> Tree:
    """How a model's files are grouped: in their order, up to a size, in at most so many groups."""
    limit = layer_mb * MB
    groups = _grouped(model.files, limit)
    while len(groups) > most:
        limit *= 2
        groups = _grouped(model.files, limit)
    whole = hashlib.sha256("".join(group.key for group in groups).encode())
    if check is not None:
        whole.update(f"\0{check.name}\0".encode() + check.read_bytes())
    return Tree(name=f"{model.name}-{whole.hexdigest()[:16]}", groups=tuple(groups), check=check)


def _grouped(files: Sequence[LockedFile], limit: int) -> list[Group]:
    """The small files of a model together, then those that are a layer each, or share one."""
    small = [file for file in files if file.size_bytes * 10 < limit]
    found: list[list[LockedFile]] = []
    for chosen in (small, [file for file in files if file not in small]):
        found.append([])
        for file in chosen:
            if found[-1] and sum(one.size_bytes for one in (*found[-1], file)) > limit:
                found.append([])
            found[-1].append(file)
    return [_group(files) for files in found if files]


def _group(files: Sequence[LockedFile]) -> Group:
    text = "".join(f"{file.name}\0{file.sha256}\n" for file in files)
    return Group(key=hashlib.sha256(text.encode()).hexdigest()[:16], files=tuple(files))


def lay(tree: Tree, folder: Path, store: Store) -> None:
    """Put a tree there, whole or not at all; files of the store are linked, not copied."""
    place = folder / tree.name
    if place.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        _fill(tree, scratch, store)
        scratch.chmod(0o755)
        scratch.rename(place)
    except OSError:
        if not place.is_dir():  # another process may have been quicker
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(tree: Tree, scratch: Path, store: Store) -> None:
    linked: set[str] = set()
    for group in tree.groups:
        for file in group.files:
            place = scratch / group.key / file.name
            place.parent.mkdir(parents=True, exist_ok=True)
            # Two links to one file in what is sent to a builder depend on the order of sending.
            _link(store.path(file), place, copy=file.sha256 in linked)
            linked.add(file.sha256)
    if tree.check is not None:
        (scratch / CHECK).mkdir()
        shutil.copyfile(tree.check, scratch / CHECK / tree.check.name)


def _link(source: Path, place: Path, *, copy: bool) -> None:
    if not copy:
        try:
            os.link(source, place)
        except OSError:  # a file system without links
            copy = True
    if copy:
        shutil.copyfile(source, place)
