"""A lock in which only some things move: what they are, and what all others stay at."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from gpulayers.errors import ProjectError
from gpulayers.lock.model import UV, Closure, Lock, LockedBase, PackageSet, Wheel
from gpulayers.lock.wanted import TOOLS, Wanted
from gpulayers.matrix.shape import nearest
from gpulayers.refs import Platform

Way = tuple[str, Platform, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The old lock, and the names of what may move: wheels, OS bases, models, Pythons, ``uv``."""

    lock: Lock
    names: frozenset[str]

    def part(self, ask: Wanted) -> Wanted:
        """What must be asked anew, but for wheels, which depend on each other."""
        return replace(
            ask,
            bases=tuple(one for one in ask.bases if one[0] in self.names),
            os_packages=tuple(one for one in ask.os_packages if one[0] in self.names),
            app_packages=tuple(one for one in ask.app_packages if one[1] in self.names),
            layer_packages=ask.layer_packages if TOOLS in self.names else (),
            pythons=tuple(one for one in ask.pythons if one[0] in self.names),
            models=tuple(one for one in ask.models if one in self.names),
            fetched=tuple(one for one in ask.fetched if one[0] in self.names),
        )

    def bases(self) -> tuple[LockedBase, ...]:
        """The bases that stay."""
        return tuple(base for base in self.lock.bases if base.os not in self.names)

    def packages(self) -> tuple[PackageSet, ...]:
        """The packages that stay: those of a base move with it."""
        return tuple(e for e in self.lock.packages if (e.os or TOOLS) not in self.names)

    def wheels(self) -> dict[Way, tuple[Wheel, ...]]:
        """The wheels of each closure and of all below it, as they were."""
        return {_way(entry): tuple(self._whole(entry)) for entry in self.lock.closures}

    def _whole(self, entry: Closure) -> list[Wheel]:
        found = [self.lock.wheels[file] for file in entry.files]
        for n, of in enumerate(entry.under):
            lower = self.lock.closure(entry.python, entry.platform, of, entry.under[:n])
            found += lower
        return sorted(found)


def _way(entry: Closure) -> Way:
    return entry.python, entry.platform, (*entry.under, entry.of)


def keeping(lock: Lock, names: Collection[str]) -> Keeping:
    """What moves by these names.

    Raises: ProjectError: the lock has no such things; names each, with what it can be.
    """
    wheels = {wheel.name for wheel in lock.wheels.values()} - {UV}
    packages = {package.name for entry in lock.packages for package in entry.packages}
    kinds: Sequence[tuple[str, set[str]]] = (
        ("bases", {base.os for base in lock.bases}),
        ("Pythons", {one.python for one in lock.pythons}),
        ("models", {model.name for model in lock.models}),
        ("tools", {UV}),
        ("wheels", wheels),
    )
    known = {name for _, kind in kinds for name in kind}
    names = {name if name in known else canonicalize_name(name) for name in names}
    faults = []
    for name in sorted(names - known):
        if name in packages:
            oses = sorted(
                {e.os or TOOLS for e in lock.packages for p in e.packages if p.name == name}
            )
            faults.append(f"  {name}: a package moves with its base: {' '.join(oses)}")
        else:
            faults.append(f"  {name}: the lock has nothing of that name; {nearest(name, known)}")
    if faults:
        told = "; ".join(f"{kind}: {' '.join(sorted(found))}" for kind, found in kinds[:4] if found)
        msg = "these cannot be updated:\n" + "\n".join(faults)
        raise ProjectError(msg, hint=f"wanted: a wheel of the lock, or one of {told}")
    return Keeping(lock=lock, names=frozenset(names))


def only_os(lock: Lock, now: Lock, os: str) -> Lock:
    """The lock with the base and the packages of one OS as another lock has them."""
    return replace(
        lock,
        bases=tuple(
            theirs if theirs.os == os else ours
            for ours, theirs in zip(lock.bases, now.bases, strict=True)
        ),
        packages=tuple(
            theirs if theirs.os == os else ours
            for ours, theirs in zip(lock.packages, now.packages, strict=True)
        ),
    )
