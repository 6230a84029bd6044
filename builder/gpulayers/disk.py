"""What gpulayers keeps on this machine that can be made or fetched again, and its removal."""

import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpulayers import statelock
from gpulayers.engine import process
from gpulayers.engine.buildx import OWN_BUILDER
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.process import Finished
from gpulayers.refs import ImageRef
from gpulayers.scan import cache

# In the state folder: made again by the next command that needs them.
CACHES = ("render", "inputs", "logs", "traceback.log", "trivy/fanal", "trivy/work")
SCANS, TRIVY = "scans", "trivy"
LOCK_WAIT_S = 10.0
PRUNE_TIMEOUT_S = 1800.0
UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_TOTAL = re.compile(r"^Total:\s*(?P<number>[\d.]+)\s*(?P<unit>[kKMGT]?B)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something that can go: a path of the state folder, or an image of the engine."""

    what: str
    size_bytes: int
    path: Path | None = None
    image: ImageRef | None = None


def of_state(state: Path, digests: Collection[str], *, everything: bool) -> tuple[Piece, ...]:
    """What can go of a state folder.

    Shape: scans of images whose digest is not among ``digests`` go; records, reports, scans of
    known images, the channels' history and Trivy's database only with ``everything``.
    """
    if everything:
        paths = sorted(state.iterdir()) if state.is_dir() else []
        paths = [path for path in paths if path.name != statelock.FILE]  # which we hold
    else:
        paths = [*(state / name for name in CACHES), *_unknown_scans(state / SCANS, digests)]
    return tuple(
        Piece(what=f"{state.name}/{path.relative_to(state)}", size_bytes=size_of(path), path=path)
        for path in paths
        if path.exists() or path.is_symlink()
    )


def _unknown_scans(scans: Path, digests: Collection[str]) -> list[Path]:
    known = {digest.removeprefix("sha256:") for digest in digests}
    folders = sorted(scans.iterdir()) if scans.is_dir() else []
    return [folder for folder in folders if folder.name not in known]


def of_engine(engine: DockerEngine, repositories: Collection[str]) -> tuple[Piece, ...]:
    """The images that the engine holds of these repositories (``HOST/PATH``), by digest.

    Units: bytes as the engine tells them, which count what images share once for each of them.
    """
    refs = (
        ImageRef.parse(f"{name}@{digest}")
        for name in sorted(repositories)
        for digest in sorted(engine.digests_of(name))
    )
    return tuple(
        Piece(what=ref.format(), size_bytes=engine.image_size(ref), image=ref) for ref in refs
    )


def remove(piece: Piece, engine: DockerEngine) -> str:
    """Remove a piece; "" when it is gone, else why it stays."""
    if piece.image is not None:
        return engine.forget(piece.image)
    if piece.path is None:
        return ""
    try:
        if piece.path.parent.name == TRIVY:
            with cache.held(piece.path.parent, wait_s=LOCK_WAIT_S):
                _remove(piece.path)
        else:
            _remove(piece.path)
    except cache.LockTimeoutError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _remove(path: Path) -> None:
    """Moved aside first: nobody finds half of a folder."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.gone")
    path.rename(aside)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside)
    else:
        aside.unlink()


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; links count as nothing."""
    return sum(file.lstat().st_size for file in _files(path))


def _files(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        for inner in path.iterdir():
            yield from _files(inner)


def own_builder() -> str:
    """The name of the builder that gpulayers made for itself, "" where it made none."""
    return OWN_BUILDER if _buildx("inspect", OWN_BUILDER).ok else ""


def build_cache_bytes(builder: str) -> int | None:
    """What a builder's cache takes ("" is the client's own); None where that is not told."""
    return parse_total(_buildx("du", *_named(builder)).stdout)


def prune_build_cache(builder: str) -> tuple[int, str]:
    """Empty a builder's cache; the bytes that this freed, and what went wrong or ""."""
    done = _buildx("prune", "--force", *_named(builder))
    return parse_total(done.stdout) or 0, "" if done.ok else " ".join(done.tail(2))


def parse_total(text: str) -> int | None:
    """The bytes on the ``Total:`` line of ``docker buildx du`` and ``prune``."""
    found = _TOTAL.search(text)
    return int(float(found["number"]) * UNITS[found["unit"]]) if found is not None else None


def _named(builder: str) -> tuple[str, ...]:
    return (f"--builder={builder}",) if builder else ()


def _buildx(*words: str) -> Finished:
    return process.run(["docker", "buildx", *words], timeout_s=PRUNE_TIMEOUT_S)
