"""Trivy's vulnerability database: where it is, whether it can be used, how it is renewed."""

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpulayers.scan import cache
from gpulayers.scan.finding import DbState

GIVEN = "GPULAYERS_TRIVY_DB"
OFFLINE = "GPULAYERS_OFFLINE"
SCHEMA = 2
JAVA_SCHEMA = 1
# A bbolt file of one page holds nothing; a real database has hundreds of MB.
SMALLEST_BYTES = 4096
# The two meta pages of a bbolt file: page header, then magic, version, page size, flags, root
# (two words), free list, high-water page. Source: go.etcd.io/bbolt internal/common/meta.go.
_META = struct.Struct("<16xIIII16xQQ")
_MAGIC = 0xED0CDAED
_LOCK_WAIT_S = 900.0


def inspect(folder: Path) -> DbState:
    """Say whether the folder holds a database that Trivy can use.

    A cut file makes Trivy panic, and old ones took a missing file for an empty database.
    """
    file, metadata = folder / "trivy.db", folder / "metadata.json"
    if not file.is_file():
        return _unusable("missing", f"there is no trivy.db in {folder}")
    reason = _damage(file)
    if reason:
        return _unusable("broken", f"{file} {reason}")
    about = _about(metadata)
    if about.get("Version") != SCHEMA:
        found = about.get("Version", "none")
        return _unusable("broken", f"{metadata}: wanted Version {SCHEMA}, found {found}")
    java = folder.parent / "java-db"
    return DbState(
        status="ready",
        folder=folder.resolve(),
        java=java.resolve() if (java / "trivy-java.db").is_file() else None,
        updated=_time(about.get("UpdatedAt")),
        reason="",
    )


def ready(
    state: Path,
    *,
    environ: Mapping[str, str],
    now: datetime,
    download: Callable[[Path], str],
) -> DbState:
    """The database to use for this run; asked once, because asking may download it.

    Shape: the folder that ``GPULAYERS_TRIVY_DB`` names and nothing else, when it is set; else our
    own, renewed when its makers have a newer one, unless ``GPULAYERS_OFFLINE`` is 1. ``download``
    fills a new cache folder and returns why it could not, or nothing. When renewing goes wrong the
    old one stays in use: its age is the policy's business.
    """
    if given := environ.get(GIVEN):
        found = inspect(Path(given))
        where = f"{GIVEN} is set: {found.reason}"
        return found if found.status == "ready" else _unusable(found.status, where)
    own = inspect(state / "db")
    if environ.get(OFFLINE) == "1":
        why = f"{own.reason}, and {OFFLINE}=1 forbids to download one"
        return own if own.status == "ready" else _unusable(own.status, why)
    if own.status == "ready" and not _is_due(state / "db", now):
        return own
    failed = _renew(state, download)
    if not failed:
        return inspect(state / "db")
    return own if own.status == "ready" else _unusable(own.status, f"{own.reason}; {failed}")


def _renew(state: Path, download: Callable[[Path], str]) -> str:
    """Download aside and swap: Trivy itself writes over the old files and may lose both."""
    with cache.workplace(state) as place:
        failed = download(place / "cache")
        if failed:
            return f"it could not be downloaded: {failed}"
        new = inspect(place / "cache" / "db")
        if new.status != "ready":
            return f"what was downloaded cannot be used: {new.reason}"
        with cache.held(state, wait_s=_LOCK_WAIT_S):
            cache.swap(place / "cache" / "db", state / "db")
    return ""


def java_index(database: DbState, state: Path) -> Path:
    """The folder of the Java index: the database's own, else an empty one that is made here.

    Without any, an image that holds one jar fails the whole scan; with an empty one jars are named
    by what they say of themselves.
    """
    if database.java is not None:
        return database.java
    folder = state / "java-empty"
    if not (folder / "metadata.json").is_file():
        write_empty_java_index(folder)
    return folder


def write_empty_java_index(folder: Path) -> None:
    """Write a Java index of schema 1 without a row.

    Source: github.com/aquasecurity/trivy-java-db pkg/db/db.go (read 2026-12-01).
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "trivy-java.db")
    connection.executescript(
        "CREATE TABLE artifacts(id INTEGER PRIMARY KEY, group_id TEXT, artifact_id TEXT);"
        "CREATE TABLE indices(artifact_id INTEGER, version TEXT, sha1 BLOB, archive_type TEXT,"
        " foreign key (artifact_id) references artifacts(id));"
        "CREATE UNIQUE INDEX artifacts_idx ON artifacts(artifact_id, group_id);"
        "CREATE INDEX indices_artifact_idx ON indices(artifact_id);"
        "CREATE UNIQUE INDEX indices_sha1_idx ON indices(sha1);"
    )
    connection.close()
    far = "9999-01-01T00:00:00Z"
    about = {"Version": JAVA_SCHEMA, "NextUpdate": far, "UpdatedAt": far, "DownloadedAt": far}
    (folder / "metadata.json").write_text(json.dumps(about), encoding="utf-8")


def _unusable(status: str, reason: str) -> DbState:
    return DbState(
        status="missing" if status == "missing" else "broken",
        folder=None,
        java=None,
        updated=None,
        reason=reason,
    )


def _damage(file: Path) -> str:
    size = file.stat().st_size
    if size <= SMALLEST_BYTES:
        return f"has {size} bytes: wanted a whole database"
    with file.open("rb") as stream:
        head = stream.read(_META.size)
    magic, _, page_size, _, _, high = _META.unpack(head)
    if magic != _MAGIC:
        return "is no bbolt file"
    if high * page_size > size:
        return f"is cut short: wanted {high * page_size} bytes, found {size}"
    return ""


def _about(metadata: Path) -> Mapping[str, object]:
    try:
        about: object = json.loads(metadata.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _is_due(folder: Path, now: datetime) -> bool:
    due = _time(_about(folder / "metadata.json").get("NextUpdate"))
    return due is None or now >= due


def _time(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if found is None:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
