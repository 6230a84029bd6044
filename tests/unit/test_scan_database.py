"""A database is inspected before Trivy sees it, and renewed without losing the old one."""

import json
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpulayers.scan import database

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PAGE = 4096


def put(folder: Path, *, due_in: timedelta = timedelta(days=1), pages: int = 4) -> Path:
    """A folder that looks like a database to our eyes; only Trivy can read more of one."""
    folder.mkdir(parents=True)
    head = struct.pack("<16xIIII16xQQ", 0xED0CDAED, 2, PAGE, 0, 2, pages)
    (folder / "trivy.db").write_bytes(head.ljust(pages * PAGE, b"\0"))
    about = {
        "Version": 2,
        "NextUpdate": (NOW + due_in).isoformat(),
        "UpdatedAt": (NOW - timedelta(days=2)).isoformat(),
    }
    (folder / "metadata.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


class Download:
    """Keeps where it was asked to put a database, and puts one there or says why not."""

    def __init__(self, failure: str = "", *, pages: int = 4) -> None:
        self.failure, self.pages = failure, pages
        self.asked: list[Path] = []

    def __call__(self, cache_dir: Path) -> str:
        self.asked.append(cache_dir)
        if not self.failure:
            put(cache_dir / "db", pages=self.pages)
        return self.failure


def test_a_whole_database_is_ready_and_tells_its_age(tmp_path: Path) -> None:
    state = database.inspect(put(tmp_path / "db"))
    assert (state.status, state.cls, state.reason) == ("ready", "", "")
    assert state.updated == NOW - timedelta(days=2)


def test_a_missing_file_is_missing_even_with_its_metadata(tmp_path: Path) -> None:
    folder = put(tmp_path / "db")
    (folder / "trivy.db").unlink()
    assert database.inspect(folder).cls == "scan-database-missing"


def test_a_stump_is_broken(tmp_path: Path) -> None:
    folder = put(tmp_path / "db")
    (folder / "trivy.db").write_bytes(b"\0" * PAGE)
    assert "4096 bytes" in database.inspect(folder).reason


def test_garbage_is_broken(tmp_path: Path) -> None:
    folder = put(tmp_path / "db")
    (folder / "trivy.db").write_bytes(b"x" * 3 * PAGE)
    assert "no bbolt file" in database.inspect(folder).reason


def test_a_cut_file_is_broken_before_trivy_panics(tmp_path: Path) -> None:
    folder = put(tmp_path / "db")
    whole = (folder / "trivy.db").read_bytes()
    (folder / "trivy.db").write_bytes(whole[:-1])
    state = database.inspect(folder)
    assert state.cls == "scan-database-broken"
    assert "cut short" in state.reason


@pytest.mark.parametrize("metadata", ['{"Version": 1}', '{"Version": 3}', "{}", "[]", "nonsense"])
def test_another_schema_is_broken(tmp_path: Path, metadata: str) -> None:
    folder = put(tmp_path / "db")
    (folder / "metadata.json").write_text(metadata, encoding="utf-8")
    assert "wanted Version 2" in database.inspect(folder).reason


def test_a_given_folder_is_used_and_nothing_is_downloaded(tmp_path: Path) -> None:
    download = Download()
    given = put(tmp_path / "given")
    environ = {"GPULAYERS_TRIVY_DB": str(given)}
    found = database.ready(tmp_path, environ=environ, now=NOW, download=download)
    assert (found.folder, download.asked) == (given.resolve(), [])


def test_a_given_folder_without_a_database_says_who_gave_it(tmp_path: Path) -> None:
    environ = {"GPULAYERS_TRIVY_DB": str(tmp_path / "nowhere")}
    found = database.ready(tmp_path, environ=environ, now=NOW, download=Download())
    assert found.status == "missing"
    assert "GPULAYERS_TRIVY_DB" in found.reason


def test_offline_forbids_the_download(tmp_path: Path) -> None:
    download = Download()
    environ = {"GPULAYERS_OFFLINE": "1"}
    found = database.ready(tmp_path, environ=environ, now=NOW, download=download)
    assert (found.status, download.asked) == ("missing", [])


def test_a_first_download_is_put_in_place(tmp_path: Path) -> None:
    found = database.ready(tmp_path, environ={}, now=NOW, download=Download())
    assert found.folder == (tmp_path / "db").resolve()
    assert list((tmp_path / "work").iterdir()) == []


def test_a_failed_download_is_missing_with_both_reasons(tmp_path: Path) -> None:
    found = database.ready(tmp_path, environ={}, now=NOW, download=Download("no such host"))
    assert found.cls == "scan-database-missing"
    assert "there is no trivy.db" in found.reason
    assert "no such host" in found.reason


def test_a_database_that_is_not_due_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "db")
    download = Download()
    database.ready(tmp_path, environ={}, now=NOW, download=download)
    assert download.asked == []


def test_a_due_database_survives_a_failed_download(tmp_path: Path) -> None:
    put(tmp_path / "db", due_in=timedelta(days=-1))
    found = database.ready(tmp_path, environ={}, now=NOW, download=Download("no such host"))
    assert found.status == "ready"


def test_a_due_database_is_replaced_and_no_rest_stays(tmp_path: Path) -> None:
    put(tmp_path / "db", due_in=timedelta(days=-1))
    found = database.ready(tmp_path, environ={}, now=NOW, download=Download(pages=5))
    assert found.folder is not None
    assert (found.folder / "trivy.db").stat().st_size == 5 * PAGE
    assert {path.name for path in tmp_path.iterdir()} == {"db", "lock", "work"}


def test_an_empty_java_index_is_made_once(tmp_path: Path) -> None:
    state = database.inspect(put(tmp_path / "db"))
    made = database.java_index(state, tmp_path)
    first = (made / "trivy-java.db").stat().st_mtime_ns
    assert database.java_index(state, tmp_path) == made
    assert (made / "trivy-java.db").stat().st_mtime_ns == first


def test_a_real_java_index_beside_the_database_is_used(tmp_path: Path) -> None:
    folder = put(tmp_path / "db")
    (tmp_path / "java-db").mkdir()
    (tmp_path / "java-db" / "trivy-java.db").write_bytes(b"x")
    state = database.inspect(folder)
    assert database.java_index(state, tmp_path) == (tmp_path / "java-db").resolve()
