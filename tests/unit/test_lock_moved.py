"""What moved between two locks is named one by one, old and new."""

from dataclasses import replace

import pytest
from lock_samples import AMD64, hash_of, package, wheel

from gpulayers.lock.model import (
    Closure,
    Lock,
    LockedBase,
    LockedModel,
    LockedPython,
    PackageSet,
    Wheel,
)
from gpulayers.lock.moved import differences


def closure(python: str, *wheels: Wheel) -> Closure:
    files = tuple(sorted(one.file for one in wheels))
    return Closure(python=python, platform=AMD64, of="cupy==13.6.0", under=("cuda",), files=files)


def lock_with(*wheels: Wheel, pythons: tuple[str, ...] = ("3.11",)) -> Lock:
    uv = wheel("uv", "0.9.0")
    return Lock(
        inputs="sha256:0",
        uv=uv,
        bases=(
            LockedBase(
                os="debian12",
                platform=AMD64,
                source="mirror/debian:12",
                repository="mirror/debian",
                digest=f"sha256:{hash_of('base')}",
                suite="bookworm",
            ),
        ),
        packages=(
            PackageSet(
                layer="base", os="debian12", platform=AMD64, packages=(package("tini", "0.19"),)
            ),
        ),
        pythons=(LockedPython(python="3.11", source="debian:bookworm", version=""),),
        wheels={one.file: one for one in (uv, *wheels)},
        closures=tuple(closure(python, *wheels) for python in pythons),
        models=(
            LockedModel(name="a", digest="sha256:11", size_bytes=1, source="h", revision="r1"),
        ),
    )


NUMPY, NEWER = wheel("numpy", "2.1.0"), wheel("numpy", "2.2.0")
OLD = lock_with(NUMPY)


def test_nothing_moved_between_equal_locks() -> None:
    assert differences(OLD, lock_with(NUMPY)) == ()


@pytest.mark.parametrize(
    ("new", "line"),
    [
        (
            lock_with(NEWER),
            "wheel numpy: 2.1.0, now 2.2.0 (cupy==13.6.0, Python 3.11, linux/amd64)",
        ),
        (
            lock_with(),
            "wheel numpy: 2.1.0 is gone (cupy==13.6.0, Python 3.11, linux/amd64)",
        ),
        (
            lock_with(replace(NUMPY, sha256="f" * 64)),
            (
                f"wheel numpy: 2.1.0 {NUMPY.file} {NUMPY.sha256[:12]} from default, now "
                f"2.1.0 {NUMPY.file} ffffffffffff from default "
                "(cupy==13.6.0, Python 3.11, linux/amd64)"
            ),
        ),
        (replace(OLD, uv=wheel("uv", "0.9.1")), "tool uv: 0.9.0, now 0.9.1"),
        (
            replace(OLD, bases=(replace(OLD.bases[0], digest="sha256:" + "a" * 64),)),
            (
                f"base debian12: mirror/debian:12@{hash_of('base')[:12]}, now "
                "mirror/debian:12@aaaaaaaaaaaa (linux/amd64)"
            ),
        ),
        (
            replace(OLD, packages=(replace(OLD.packages[0], packages=(package("tini", "0.20"),)),)),
            "package tini: 0.19, now 0.20 (base, debian12, linux/amd64)",
        ),
        (
            replace(OLD, pythons=(replace(OLD.pythons[0], source="standalone", version="3.11.9"),)),
            "Python 3.11: debian:bookworm, now standalone:3.11.9",
        ),
        (replace(OLD, models=(replace(OLD.models[0], revision="r2"),)), "model a: r1, now r2"),
        (
            replace(OLD, models=(replace(OLD.models[0], digest="sha256:22"),)),
            "model a: r1 11, now r1 22",
        ),
    ],
)
def test_each_thing_that_moved_is_named_with_old_and_new(new: Lock, line: str) -> None:
    assert differences(OLD, new) == (line,)


def test_what_moved_in_many_places_is_told_once() -> None:
    pythons = ("3.10", "3.11", "3.12")
    (line,) = differences(lock_with(NUMPY, pythons=pythons), lock_with(NEWER, pythons=pythons))
    assert line.endswith("(cupy==13.6.0, Python 3.10, linux/amd64 and 2 more)")
