"""What the facts say of cells: can they be installed, and do they run on the fleet's hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gpulayers.compat import judge
from gpulayers.compat.bases import NVIDIA
from gpulayers.compat.model import Judgement, Query
from gpulayers.facts import find
from gpulayers.facts.load import load
from gpulayers.facts.model import Facts
from gpulayers.matrix.model import Cell, Host, Matrix
from gpulayers.refs import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHost:
    """A verdict on one kind of machine: ``gpus`` maps each of its GPUs to a judgement."""

    host: Host
    gpus: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """What the facts say of a cell on one platform; ``hosts`` is empty without a fleet."""

    install: Judgement
    hosts: tuple[OnHost, ...]


class Judging:
    """Verdicts on the cells of a matrix; cells that differ only in what no fact asks share one.

    Raises: FactError: a host of the fleet has a GPU or driver that nobody knows.
    """

    def __init__(self, matrix: Matrix) -> None:
        packages = {pin.name for pin in matrix.axes.framework}
        packages |= {cell.framework.name for cell in matrix.includes}
        self.matrix = matrix
        self.facts: Facts = load(tuple(sorted(packages)))
        for host in matrix.fleet:
            find.driver(self.facts, host.driver)
            for gpu in host.gpus:
                find.gpu(self.facts, gpu)
        self._known = lru_cache(maxsize=None)(self._verdict)

    def of(self, cell: Cell, platform: Platform) -> CellVerdict:
        """The verdict on a cell."""
        return self._known(self._query(cell, platform))

    def _query(self, cell: Cell, platform: Platform) -> Query:
        base = self.matrix.bases.get(cell.os)
        sources: Sequence[str] = base.sources if base is not None else ()
        return Query(
            framework=cell.framework,
            cuda=cell.cuda,
            gpu="",
            driver="",
            python=cell.python.format(),
            os=cell.os,
            platform=platform,
            base=next((source for source in sources if NVIDIA.fullmatch(source)), ""),
        )

    def _verdict(self, query: Query) -> CellVerdict:
        return CellVerdict(
            install=judge.installable(query, self.facts),
            hosts=tuple(self._on_host(query, host) for host in self.matrix.fleet),
        )

    def _on_host(self, query: Query, host: Host) -> OnHost:
        asked = {gpu: replace(query, gpu=gpu, driver=host.driver) for gpu in host.gpus}
        return OnHost(
            host=host,
            gpus={
                gpu: judge.judge(each, self.facts, with_fixes=False) for gpu, each in asked.items()
            },
        )
