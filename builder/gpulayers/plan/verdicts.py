"""What the facts say of cells: can they be installed, and do they run on the fleet's hosts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpulayers.compat import judge, requirement
from gpulayers.compat.bases import NVIDIA
from gpulayers.compat.model import ORDER, Judgement, Query, RequiredDriver
from gpulayers.compat.subject import Subject, choose
from gpulayers.errors import Problem
from gpulayers.facts import find
from gpulayers.facts.load import load
from gpulayers.facts.model import Facts
from gpulayers.matrix.lines import KeyPath
from gpulayers.matrix.model import PLAIN_INDEX, Cell, Host, Matrix
from gpulayers.refs import Platform
from gpulayers.versions import Pin


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHost:
    """A verdict on one kind of machine: ``gpus`` maps each of its GPUs to a judgement.

    Shape: of several platforms, that of the one that fits best.
    """

    host: Host
    gpus: Mapping[str, Judgement]

    @property
    def best(self) -> Judgement:
        """The judgement on the GPU that it runs best on."""
        return max(self.gpus.values(), key=lambda found: ORDER.index(found.verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What an image asks of a host: drivers, and the same and more as ``NVIDIA_REQUIRE_CUDA``.

    Shape: ``requirement`` is "" where nothing is known.
    """

    driver: RequiredDriver
    requirement: str


class Judging:
    """Verdicts on the cells of a matrix; cells that differ only in what no fact asks share one."""

    def __init__(self, matrix: Matrix) -> None:
        packages = {pin.name for pin in matrix.axes.framework}
        packages |= {cell.framework.name for cell in matrix.includes}
        self.matrix = matrix
        self._known = tuple(sorted(packages))
        self.facts: Facts = load(self._known)
        self._bases = {os: _nvidia_base(matrix, os) for os in matrix.bases}
        self._packages = {name: _packages(matrix, name) for name in matrix.frameworks}
        self._indexes = {
            name: options.indexes for name, options in matrix.frameworks.items() if options.indexes
        }
        self._hosts = lru_cache(maxsize=None)(self._on_hosts)

    def problems(self) -> Iterator[Problem]:
        """Drivers and GPUs of the fleet that nobody knows."""
        for host in self.matrix.fleet:
            place: KeyPath = ("fleet", host.name)
            asked: list[tuple[KeyPath, str, Callable[[Facts, str], object]]]
            asked = [((*place, "driver"), host.driver, find.driver)]
            asked += [((*place, "gpus", n), gpu, find.gpu) for n, gpu in enumerate(host.gpus)]
            for path, text, finder in asked:
                if not text:
                    continue  # told already
                try:
                    finder(self.facts, text)
                except find.FactError as error:
                    msg, _, wanted = str(error).partition(": wanted ")
                    yield self.matrix.source.problem(
                        path, wanted=wanted or "a known one", found=msg, hint=error.hint
                    )

    def installable(self, cell: Cell, platform: Platform) -> Judgement:
        """Whether its wheels can be installed; ``ok``, ``unknown`` or ``broken``, without fixes."""
        return _installable(self.query(cell, platform), self._known, with_fixes=False)

    def explained(self, cell: Cell, platform: Platform) -> Judgement:
        """The same with fixes."""
        return _installable(self.query(cell, platform), self._known, with_fixes=True)

    def hosts(self, cell: Cell, platforms: Sequence[Platform]) -> tuple[OnHost, ...]:
        """A verdict for each host of the fleet, from its images on these platforms."""
        return self._hosts(tuple(self.query(cell, platform) for platform in platforms))

    def at(
        self, cell: Cell, platform: Platform, *, driver: str, gpu: str, with_fixes: bool = False
    ) -> Judgement:
        """The verdict on any driver and GPU."""
        query = replace(self.query(cell, platform), gpu=gpu, driver=driver)
        return judge.judge(query, self.facts, with_fixes=with_fixes)

    def needed(self, cell: Cell, platform: Platform) -> Needed:
        """What a cell's image asks of a host."""
        # Neither Python nor OS decide any of it: cells that differ in them share one answer.
        query = replace(self.query(cell, platform), python="", os="", base="")
        return _needed(query, self._known)

    def index(self, cell: Cell, platform: Platform) -> str:
        """The name of the index that its framework's own wheels come from.

        Shape: where no fact says which, the first that the project names.
        """
        named = self._indexes.get(cell.framework.name, (PLAIN_INDEX,))
        subject = choose(self.query(cell, platform), self.facts)
        if isinstance(subject, Subject) and subject.build.index in named:
            return subject.build.index
        return named[0]

    def query(self, cell: Cell, platform: Platform) -> Query:
        """What a cell asks of the judge, without a host."""
        return Query(
            framework=cell.framework,
            cuda=cell.cuda,
            gpu="",
            driver="",
            python=cell.python.format(),
            os=cell.os,
            platform=platform,
            packages=self._packages.get(cell.framework.name, ()),
            base=self._bases.get(cell.os, ""),
            indexes=self._indexes.get(cell.framework.name, (PLAIN_INDEX,)),
        )

    def _on_hosts(self, queries: tuple[Query, ...]) -> tuple[OnHost, ...]:
        return tuple(
            OnHost(host=host, gpus={gpu: self._best(queries, host, gpu) for gpu in host.gpus})
            for host in self.matrix.fleet
        )

    def _best(self, queries: tuple[Query, ...], host: Host, gpu: str) -> Judgement:
        found = [
            judge.judge(replace(query, gpu=gpu, driver=host.driver), self.facts, with_fixes=False)
            for query in queries
        ]
        return max(found, key=lambda each: ORDER.index(each.verdict))


@cache
def _installable(query: Query, packages: tuple[str, ...], *, with_fixes: bool) -> Judgement:
    return judge.installable(query, load(packages), with_fixes=with_fixes)


@cache
def _needed(query: Query, packages: tuple[str, ...]) -> Needed:
    found = judge.installable(query, load(packages))
    return Needed(driver=found.required_driver, requirement=requirement.of(query, load(packages)))


def _nvidia_base(matrix: Matrix, os: str) -> str:
    return next((source for source in matrix.bases[os].sources if NVIDIA.fullmatch(source)), "")


def _packages(matrix: Matrix, framework: str) -> tuple[Pin, ...]:
    """What the project adds to a framework at one exact version, on every Python and platform."""
    found = (_exact(Requirement(text)) for text in matrix.frameworks[framework].requirements)
    return tuple(pin for pin in found if pin is not None)


def _exact(requirement: Requirement) -> Pin | None:
    """The one version that a requirement names; a marker says that it is not always asked for."""
    specifiers = list(requirement.specifier)
    if requirement.marker or len(specifiers) != 1:
        return None
    only = specifiers[0]
    if only.operator not in {"==", "==="} or only.version.endswith(".*"):
        return None
    return Pin(canonicalize_name(requirement.name), only.version)
