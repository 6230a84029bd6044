"""What moved between two locks for the same wishes: each thing by its name, old and new."""

from collections.abc import Iterator, Mapping, Sequence

from gpulayers.lock.model import (
    Closure,
    Lock,
    LockedBase,
    LockedModel,
    LockedPython,
    PackageSet,
    Wheel,
)

# What moved, old, new: "" where it is not there.
Change = tuple[str, str, str]


def differences(old: Lock, new: Lock) -> tuple[str, ...]:
    """A line for each thing that moved, with all places where it did; empty where nothing did.

    Shape: ``wheel numpy: 2.1.0, now 2.2.0 (cupy==13.6.0, Python 3.11, linux/amd64)``.
    """
    places: dict[Change, list[str]] = {}
    for change, place in _changes(old, new):
        places.setdefault(change, []).append(place)
    return tuple(_line(change, found) for change, found in places.items())


def _line(change: Change, places: Sequence[str]) -> str:
    what, old, new = change
    told = f"{old}, now {new}" if old and new else f"{old} is gone" if old else f"{new} is new"
    where = places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else "")
    return f"{what}: {told}" + (f" ({where})" if where else "")


def _changes(old: Lock, new: Lock) -> Iterator[tuple[Change, str]]:
    yield from _apart("base", _bases(old.bases), _bases(new.bases))
    yield from _apart("Python", _pythons(old.pythons), _pythons(new.pythons))
    yield from _apart("model", _models(old.models), _models(new.models))
    yield from _apart("tool", {("uv", ""): _wheel(old.uv)}, {("uv", ""): _wheel(new.uv)})
    yield from _apart("package", _packages(old.packages), _packages(new.packages))
    yield from _apart("wheel", _wheels(old), _wheels(new))


# A thing's name and its place, to what is locked there: what is shown, and what may differ alone.
Things = Mapping[tuple[str, str], str]


def _apart(what: str, old: Things, new: Things) -> Iterator[tuple[Change, str]]:
    for name, place in sorted(old.keys() | new.keys()):
        one, other = old.get((name, place), ""), new.get((name, place), "")
        if one != other:
            yield (f"{what} {name}", *_readable(one, other)), place


def _readable(old: str, new: str) -> tuple[str, str]:
    """The versions, and the rest only where these are the same."""
    one, other = old.partition(" ")[0], new.partition(" ")[0]
    return (old, new) if one == other else (one, other)


def _bases(bases: Sequence[LockedBase]) -> Things:
    return {
        (base.os, base.platform.format()): f"{base.source}@{_short(base.digest)}" for base in bases
    }


def _pythons(pythons: Sequence[LockedPython]) -> Things:
    return {(one.python, ""): f"{one.source}:{one.version}".rstrip(":") for one in pythons}


def _models(models: Sequence[LockedModel]) -> Things:
    return {
        (one.name, ""): " ".join(filter(None, (one.revision, _short(one.digest)))) for one in models
    }


def _packages(sets: Sequence[PackageSet]) -> Things:
    return {
        (package.name, _where(entry)): f"{package.version} {_short(package.sha256)}"
        for entry in sets
        for package in entry.packages
    }


def _where(entry: PackageSet) -> str:
    return ", ".join(filter(None, (entry.layer, entry.os, entry.platform.format())))


def _wheels(lock: Lock) -> Things:
    return {
        (wheel.name, _layer(closure)): _wheel(wheel)
        for closure in lock.closures
        for wheel in (lock.wheels[file] for file in closure.files)
    }


def _layer(closure: Closure) -> str:
    return f"{closure.of}, Python {closure.python}, {closure.platform.format()}"


def _wheel(wheel: Wheel) -> str:
    return f"{wheel.version} {wheel.file} {_short(wheel.sha256)} from {wheel.index}"


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
