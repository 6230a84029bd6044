"""The hand-made database: what is written is what is read, and only Trivy's own test is missing."""

import json
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from gpulayers.scan.database import inspect
from trivy_db import artifact, bolt, cli, database, reader, sample

KEYS = st.text(min_size=1, max_size=40)
BUCKETS = st.dictionaries(KEYS, st.binary(max_size=200) | st.dictionaries(KEYS, st.binary()))


@given(st.dictionaries(KEYS, BUCKETS, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, tree: bolt.Tree) -> None:
    path = tmp_path_factory.mktemp("bolt") / "file.db"
    bolt.write(path, tree)
    assert reader.read(path) == tree


def test_a_bucket_of_many_pages_and_long_values_is_read(tmp_path: Path) -> None:
    rows: bolt.Tree = {f"{number:06}": bytes(number % 9000) for number in range(3000)}
    bolt.write(tmp_path / "file.db", {"bucket": rows})
    assert reader.read(tmp_path / "file.db") == {"bucket": rows}


def test_a_root_that_holds_a_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="buckets only"):
        bolt.write(tmp_path / "file.db", {"value": b"x"})


@pytest.mark.parametrize(
    ("damage", "words"),
    [(lambda raw: raw[:-1], "cut short"), (lambda raw: b"x" * len(raw), "no bbolt file")],
    ids=["cut", "garbage"],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    path = tmp_path / "file.db"
    bolt.write(path, {"bucket": {"key": b"value"}})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=words):
        reader.read(path)


def test_the_sample_is_a_database_that_a_scan_takes(tmp_path: Path) -> None:
    updated = datetime(2026, 12, 1, tzinfo=UTC)
    database.build(sample.DATA, tmp_path / "db", updated=updated, valid=timedelta(days=1))
    found = inspect(tmp_path / "db")
    assert (found.status, found.updated) == ("ready", updated)


def test_every_advisory_of_the_sample_has_its_details() -> None:
    tree = database.tree(sample.DATA)
    details = tree["vulnerability"]
    assert isinstance(details, dict)
    for advisory in (*sample.DEBIAN_ADVISORIES, *sample.PIP_ADVISORIES):
        assert advisory.vulnerability in details


def test_packing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    cli.main(["build", str(tmp_path / "db")])
    for name in ("a.tar.gz", "b.tar.gz"):
        artifact.pack(tmp_path / "db", tmp_path / name)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert archive.getnames() == ["trivy.db", "metadata.json"]


def test_dump_shows_one_bucket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["build", str(tmp_path / "db")])
    capsys.readouterr()
    cli.main(["dump", str(tmp_path / "db" / "trivy.db"), sample.DEBIAN, "zlib"])
    assert json.loads(capsys.readouterr().out) == {"CVE-2023-45853": {"Status": 5}}
