"""Files of ours: whole or not at all, swept when a writer was killed, refused when too new."""

import json
import threading
from pathlib import Path

import pytest
from lock_samples import cells_of, lock_for, packaged_library, read_matrix

from gpulayers import documents, record
from gpulayers.catalog import state
from gpulayers.errors import ProjectError
from gpulayers.history import History
from gpulayers.lock import file as lock_file
from gpulayers.lock import wanted
from gpulayers.record import Records

ROOT = Path(__file__).parents[2]
NEWER = "found schema 2, of a newer gpulayers"
DIGEST = f"sha256:{'a' * 64}"


def test_a_text_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    documents.write(path, "one\n")
    documents.write(path, "two é\n")
    assert path.read_text(encoding="utf-8") == "two é\n"
    assert [file.name for file in path.parent.iterdir()] == ["b.json"]


def test_a_file_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    documents.write(tmp_path / "secret", "x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    documents.write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        documents.write(path, "new \ud800")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["b.json"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path, texts = tmp_path / "b", ("x" * 100_000, "y" * 100_000)
    documents.write(path, texts[0])

    def turn() -> None:
        for number in range(30):
            documents.write(path, texts[number % 2])

    writers = [threading.Thread(target=turn) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_text() in texts
    assert [file.name for file in tmp_path.iterdir()] == ["b"]


def test_what_a_killed_writer_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    for name in (".report.json.0a1b2c3d.new", "report.json", ".hidden.new", "a.new"):
        (tmp_path / name).write_text("x")
    documents.sweep(tmp_path)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == [".hidden.new", "a.new", "report.json"]


@pytest.mark.parametrize("found", [None, "1", 1.0, True, 0], ids=str)
def test_a_schema_that_is_none_of_ours_is_named(tmp_path: Path, found: object) -> None:
    with pytest.raises(ProjectError, match="wanted schema 1, found") as caught:
        documents.demand_schema(found, 1, path=tmp_path / "x.json", remedy="do this")
    assert caught.value.hint == "do this"
    assert "newer" not in str(caught.value)


def test_a_newer_schema_says_what_to_do(tmp_path: Path) -> None:
    documents.demand_schema(1, 1, path=tmp_path, remedy="")
    with pytest.raises(ProjectError, match=NEWER) as caught:
        documents.demand_schema(2, 1, path=tmp_path / "x.json", remedy="remove it")
    assert caught.value.hint == "update gpulayers; or remove it"
    assert "x.json" in str(caught.value)


def test_a_newer_lock_says_so_whatever_else_is_new_in_it(tmp_path: Path) -> None:
    matrix, library = read_matrix(ROOT / "matrix.toml"), packaged_library()
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    text = lock_file.format_lock(lock).replace("schema = 1", "schema = 2", 1)
    path = tmp_path / "matrix.lock.toml"
    path.write_text(f"{text}\n[[brand-new]]\nx = 1\n", encoding="utf-8")
    with pytest.raises(ProjectError, match=NEWER) as caught:
        lock_file.read(path)
    assert caught.value.hint == "update gpulayers; or make it anew: gpulayers lock"


def test_a_newer_report_says_so_to_all_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    record.write(path, {"schema": 2, "images": []})
    with pytest.raises(ProjectError, match=NEWER):
        record.read_images(path)
    with pytest.raises(ProjectError, match=NEWER):
        state.read(tmp_path)


def test_a_newer_record_says_so_and_one_without_a_schema_is_of_the_first(tmp_path: Path) -> None:
    records, path = Records(tmp_path), tmp_path / f"{'a' * 64}.json"
    gates = {name: {"status": "passed", "class": "", "text": ""} for name in record.GATES}
    record.write(path, {"schema": 2, "gates": gates})
    with pytest.raises(ProjectError, match=NEWER):
        records.read_gates(DIGEST)
    record.write(path, {"gates": gates})
    found = records.read_gates(DIGEST)
    assert found is not None
    assert set(found) == set(record.GATES)


def test_a_newer_history_says_so(tmp_path: Path) -> None:
    path = tmp_path / "channels.json"
    path.write_text(json.dumps({"schema": 2, "moves": [{"to": "come"}]}), encoding="utf-8")
    with pytest.raises(ProjectError, match=NEWER) as caught:
        History(path).read()
    assert "move it aside" in caught.value.hint
