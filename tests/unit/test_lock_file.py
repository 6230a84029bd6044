"""The lock as a file: the same lock the same bytes, and nothing that we did not write."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lock_samples import (
    AMD64,
    DEMO,
    REPOSITORY,
    cells_of,
    hash_of,
    lock_for,
    packaged_library,
    read_matrix,
    wheel,
)

from gpulayers.errors import ProjectError
from gpulayers.lock import file, wanted
from gpulayers.lock.model import Closure, Lock, LockedBase, Package, PackageSet


def small() -> Lock:
    matrix = read_matrix(DEMO / "matrix.toml")
    return lock_for(wanted.gather(matrix, packaged_library(), cells_of(matrix)), matrix)


def empty(**changes: object) -> Lock:
    lock = Lock(
        inputs="sha256:0",
        uv=wheel("uv", "1.0"),
        bases=(),
        packages=(),
        pythons=(),
        wheels={},
        closures=(),
        models=(),
    )
    return replace(lock, **changes)  # type: ignore[arg-type]


def read_text(folder: Path, text: str) -> Lock | None:
    path = folder / "matrix.lock.toml"
    path.write_text(text, encoding="utf-8")
    return file.read(path)


def test_a_lock_that_is_written_reads_back_as_itself(tmp_path: Path) -> None:
    lock = small()
    path = tmp_path / "matrix.lock.toml"
    file.write(path, lock)
    assert file.read(path) == lock
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_same_lock_gives_the_same_bytes_whatever_the_order_of_its_wheels() -> None:
    lock = small()
    turned = replace(lock, wheels=dict(reversed(list(lock.wheels.items()))))
    assert file.format_lock(turned) == file.format_lock(lock) == file.format_lock(small())


def test_an_empty_lock_reads_back(tmp_path: Path) -> None:
    assert read_text(tmp_path, file.format_lock(empty())) == empty()


TEXTS = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters=" "), min_size=1
)


@settings(deadline=None, max_examples=30)
@given(TEXTS, TEXTS, st.lists(TEXTS, unique=True, max_size=3), st.integers(0, 2**62))
def test_any_text_in_a_lock_reads_back(
    name: str, version: str, under: list[str], size_bytes: int
) -> None:
    one = replace(wheel("x", "1"), file=name, version=version, size_bytes=size_bytes)
    lock = empty(
        bases=(
            LockedBase(
                os=name,
                platform=AMD64,
                source=version,
                repository="",
                digest=f"sha256:{hash_of('x')}",
                suite="",
                blanks=(version,),
            ),
        ),
        packages=(
            PackageSet(
                layer=name,
                os="",
                platform=AMD64,
                packages=(Package(name=name, version=version, sha256=hash_of(name)),),
            ),
        ),
        wheels={name: one},
        closures=(
            Closure(python="3.11", platform=AMD64, of=version, under=tuple(under), files=(name,)),
        ),
    )
    assert file.parse(file.format_lock(lock)) == lock


def test_the_file_says_that_it_is_made_and_names_no_address() -> None:
    text = file.format_lock(small())
    assert text.startswith("# Made by `gpulayers lock`")
    assert "://" not in text
    assert str(REPOSITORY) not in text


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert file.read(tmp_path / "matrix.lock.toml") is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "", "no key 'schema'"),
        ("[tools.uv]", "[tools.vu]", "no key 'uv'"),
        ('inputs = "', "inputs = 3 # ", "inputs: wanted a string"),
        ("size = 50000", "size = true", "size: wanted an integer"),
        ("size = 50000", 'size = "big"', "size: wanted an integer"),
        ('platform = "linux/amd64"', 'platform = "plan9"', "unknown platform 'plan9'"),
        ("under = []", "under = [1]", "under: wanted an array of strings"),
        ("under = []", "under = 1", "under: wanted an array of strings"),
        ('digest = "sha256:', 'digest = "sha256:x', "digest: wanted sha256:64 hex digits"),
        ('digest = "sha256:', 'digest = "', "digest: wanted sha256:64 hex digits"),
        ('sha256 = "', 'sha256 = "; rm -rf /', "sha256: wanted 64 hex digits"),
        ("tini 1.0-init ", "tini ", "not enough values"),
        ("tini 1.0-init ", "tini 1.0-init x", "wanted 64 hex digits"),
        ("[[wheel]]\nfile", "[[wheel]]\nfiles", "no key 'file'"),
        ("[[wheel]]\nfile = ", "[[wheel]]\nfile = 'other' # ", "which a [[closure]] names"),
        ("schema = 1", "schema = 1\n<<<<<<< HEAD", "Invalid statement"),
        ("[[python]]", "[[pythom]]", "a [[pythom]]"),
    ],
)
def test_a_lock_that_we_did_not_write_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = file.format_lock(small())
    assert old in text
    with pytest.raises(ProjectError) as caught:
        read_text(tmp_path, text.replace(old, new, 1))
    assert words in str(caught.value)
    assert str(caught.value).startswith("matrix.lock.toml is not a lock of this version: ")
    assert caught.value.hint == "run: gpulayers lock"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "matrix.lock.toml").write_bytes(b"schema = 1 # \xff")
    with pytest.raises(ProjectError, match="not a lock of this version"):
        file.read(tmp_path / "matrix.lock.toml")


def test_a_big_lock_is_written_and_read_within_seconds() -> None:
    wheels = [wheel(f"package-{number}", "1.0") for number in range(500)]
    closures = tuple(
        Closure(
            python="3.11",
            platform=AMD64,
            of=f"closure {number}",
            under=(),
            files=tuple(sorted(one.file for one in wheels[number : number + 20])),
        )
        for number in range(160)
    )
    lock = empty(wheels={one.file: one for one in wheels}, closures=closures)
    start = time.thread_time()
    assert file.parse(file.format_lock(lock)).closures == closures
    assert time.thread_time() - start < 8


def test_a_lock_for_other_cells_has_no_answer() -> None:
    lock = small()
    with pytest.raises(KeyError):
        lock.base("plan9", AMD64)
    with pytest.raises(KeyError):
        lock.closure("3.11", AMD64, "torch==1.0", ())
    assert lock.package_set("nothing", AMD64) == ()
