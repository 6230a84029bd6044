"""The wheels of every layer, lowest first; what cannot be is told whole, with its reason."""

import contextlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gpulayers.errors import ProjectError
from gpulayers.lock import apps, conflict
from gpulayers.lock.model import Closure, Wheel
from gpulayers.lock.update import Keeping, Way
from gpulayers.lock.wanted import ClosureWanted
from gpulayers.lock.wheels import Question

Ask = Callable[[Question], tuple[Wheel, ...]]
CUDA = re.compile(r"cuda==(?P<version>(?P<major>\d+)\.\d+) \S*(?: for (?P<framework>\S+))?")


@dataclass(slots=True)
class Resolving:
    """Closures being resolved, level by level.

    Shape: ``whole`` has the wheels of a closure and of all below it; ``used`` the requirements that
    gave it; ``failed`` why one cannot be. ``kept`` are like ``whole``, as they were: of these only
    wheels of the names in ``moving`` may be others.
    """

    asked: Mapping[Way, ClosureWanted]
    ask: Ask
    kept: Mapping[Way, tuple[Wheel, ...]] = field(default_factory=dict)
    moving: Collection[str] = ()
    whole: dict[Way, tuple[Wheel, ...]] = field(default_factory=dict)
    used: dict[Way, tuple[str, ...]] = field(default_factory=dict)
    failed: dict[Way, str] = field(default_factory=dict)

    def level(self, level: int, pool: ThreadPoolExecutor) -> None:
        """Resolve the closures that have so many below them."""
        jobs = {
            way: pool.submit(self._resolved, one)
            for way, one in self.asked.items()
            # Above what cannot be there is nothing to find out.
            if len(one.under) == level and (not one.under or below(one) in self.whole)
        }
        for way, job in jobs.items():
            found = job.result()
            if isinstance(found, str):
                self.failed[way] = found
            else:
                self.whole[way] = found

    def _resolved(self, one: ClosureWanted) -> tuple[Wheel, ...] | str:
        way = (one.python, one.platform, (*one.under, one.of))
        if way in self.kept and not self._moves(way):
            return self.kept[way]
        fixed = self.whole.get(below(one), ())
        if clash := apps.clash(one.requirements, fixed, one.python, one.platform):
            return clash
        try:
            wheels = self._wheels(one)
        except ProjectError as error:
            return conflict.reason(str(error))
        match = CUDA.fullmatch((*one.under, one.of)[0])
        strange = conflict.foreign(wheels, int(match["major"])) if match is not None else ""
        if strange:
            return f"it brings libraries of another CUDA: {strange}"
        return conflict.replaced(fixed, wheels) or apps.strange_hash(one.hashes, wheels) or wheels

    def _wheels(self, one: ClosureWanted) -> tuple[Wheel, ...]:
        ways = [(one.python, one.platform, one.under[: n + 1]) for n in range(len(one.under))]
        lower = tuple(text for way in ways for text in self.used[way])
        own, fixed = one.requirements, self.whole.get(below(one), ())
        if one.beside:
            # All together first: then these alone, in the versions that the others allow.
            own, fixed = self._together(one)
        self.used[one.python, one.platform, (*one.under, one.of)] = own
        return self._answer(one, (*lower, *own), fixed)

    def _together(self, one: ClosureWanted) -> tuple[tuple[str, ...], tuple[Wheel, ...]]:
        try:
            return one.requirements, self._answer(one, (*one.requirements, *one.beside), ())
        except ProjectError:
            # torch 2.7.1 asks for NVRTC of CUDA 12.6.2 and cuBLAS of 12.6.3.
            with contextlib.suppress(ProjectError):
                return one.mixed, self._answer(one, (*one.mixed, *one.beside), ())
            raise

    def _answer(
        self, one: ClosureWanted, requirements: tuple[str, ...], fixed: tuple[Wheel, ...]
    ) -> tuple[Wheel, ...]:
        stays = self._stays(one)
        there = {wheel.name for wheel in fixed}
        found = self.ask(
            Question(
                python=one.python,
                platform=one.platform,
                requirements=requirements,
                fixed=(*fixed, *(wheel for name, wheel in stays.items() if name not in there)),
                stands_in_for=one.stands_in_for,
                sources=one.sources,
            )
        )
        # The same version may have got a file that fits better since.
        same = {(wheel.name, wheel.version): wheel for wheel in stays.values()}
        return tuple(sorted(same.get((each.name, each.version), each) for each in found))

    def _moves(self, way: Way) -> bool:
        """Whether a closure, or one that stands on it, has a wheel that may move."""
        return any(
            wheel.name in self.moving for upper in self._above(way) for wheel in self.kept[upper]
        )

    def _above(self, way: Way) -> list[Way]:
        python, platform, names = way
        return [
            each
            for each in self.kept
            if each[:2] == (python, platform) and each[2][: len(names)] == names
        ]

    def _stays(self, one: ClosureWanted) -> dict[str, Wheel]:
        """The wheels that a closure may not change, by name; empty where everything may move."""
        way = (one.python, one.platform, (*one.under, one.of))
        # What lies beside is asked for together with it, and is the layer right above.
        ways = [each for each in self._above(way) if len(each[2]) == len(way[2]) + 1]
        found = {
            wheel.name: wheel
            for each in [*(ways if one.beside else ()), way]
            for wheel in self.kept.get(each, ())
        }
        return {name: wheel for name, wheel in found.items() if name not in self.moving}

    def closure(self, way: Way) -> Closure:
        """What a resolved closure adds to those below it."""
        one = self.asked[way]
        lower = {wheel.file for wheel in self.whole.get(below(one), ())}
        return Closure(
            python=one.python,
            platform=one.platform,
            of=one.of,
            under=one.under,
            files=tuple(sorted({wheel.file for wheel in self.whole[way]} - lower)),
        )


def below(one: ClosureWanted) -> Way:
    """The closure right below one, by all that it stands on."""
    return one.python, one.platform, one.under


def resolve(
    wanted: Sequence[ClosureWanted],
    ask: Ask,
    pool: ThreadPoolExecutor,
    keep: Keeping | None = None,
) -> tuple[tuple[Closure, ...], dict[str, Wheel]]:
    """All closures, sorted, and their wheels by file name; with ``keep`` only some wheels move.

    Raises: ProjectError: some cannot be; names every one of them, with what disagrees;
        RemoteError: the index does not answer.
    """
    asked = {(one.python, one.platform, (*one.under, one.of)): one for one in wanted}
    work = Resolving(asked=asked, ask=ask)
    if keep is not None:
        work = Resolving(asked=asked, ask=ask, kept=keep.wheels(), moving=keep.names)
    for level in sorted({len(one.under) for one in wanted}):
        work.level(level, pool)
    if work.failed:
        raise refusal(work.failed)
    wheels = {wheel.file: wheel for found in work.whole.values() for wheel in found}
    return tuple(sorted(map(work.closure, work.whole))), wheels


def refusal(failed: Mapping[Way, str]) -> ProjectError:
    """Every combination that cannot be, those of one reason in a line."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for (python, platform, names), why in sorted(failed.items()):
        groups.setdefault((_shown(names), platform.format(), why), []).append(python)
    lines = [
        f"  {names}, Python {' '.join(pythons)}, {platform}: {why}"
        for (names, platform, why), pythons in groups.items()
    ]
    msg = f"no set of wheels fits {len(failed)} combinations of the matrix:\n" + "\n".join(lines)
    hint = "take them out with [[exclude]] and a reason, or change a version on an axis"
    return ProjectError(msg.replace("fits 1 combinations", "fits 1 combination"), hint=hint)


def _shown(names: Sequence[str]) -> str:
    """``cuda==12.6, torch==2.8.0``: a closure's names without the parts of CUDA."""
    match = CUDA.fullmatch(names[0])
    if match is None:
        return ", ".join(names)
    own = (match["framework"],) if match["framework"] and len(names) == 1 else ()
    return ", ".join((f"cuda=={match['version']}", *own, *names[1:]))
