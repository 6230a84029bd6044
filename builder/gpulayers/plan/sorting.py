"""Which cells there are: kept, impossible (a fact says so), excluded (a choice of ours)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpulayers.compat.bases import NVIDIA, about
from gpulayers.compat.model import ORDER, RUNS, Judgement
from gpulayers.errors import Problem
from gpulayers.layer import Library
from gpulayers.lock import wanted
from gpulayers.lock.wanted import Served
from gpulayers.matrix.model import PLAIN_INDEX, Cell, Exclude, Host, Matrix
from gpulayers.matrix.select import Selection, choose
from gpulayers.matrix.select import explain_nothing as explain_choice
from gpulayers.matrix.shape import quoted
from gpulayers.plan.verdicts import Judging, OnHost
from gpulayers.refs import Platform

SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorting:
    """Every cell of a selection, in exactly one of three.

    Shape: ``kept`` maps a cell to the platforms that it has images for, in the order of the matrix;
    ``impossible`` maps one to the judgement on each platform, all of them ``broken``;
    ``overruled`` are kept includes that the facts call impossible; each is in the order of the
    selection; ``served`` is for the lock and the plan.
    """

    kept: Mapping[Cell, tuple[Platform, ...]]
    impossible: Mapping[Cell, Mapping[Platform, Judgement]]
    excluded: tuple[tuple[Cell, Exclude], ...]
    overruled: Mapping[Cell, Judgement]
    served: Served

    def only(self, cells: Collection[Cell]) -> "Sorting":
        """The part of it that these cells are."""
        wanted_cells = set(cells)
        return replace(
            self,
            kept={c: p for c, p in self.kept.items() if c in wanted_cells},
            impossible={c: v for c, v in self.impossible.items() if c in wanted_cells},
            excluded=tuple(pair for pair in self.excluded if pair[0] in wanted_cells),
            overruled={c: v for c, v in self.overruled.items() if c in wanted_cells},
        )


def sort(judging: Judging, library: Library, selection: Selection) -> Sorting:
    """Keep the impossible out of what was chosen; an include stays, whatever the facts say.

    Shape: a cell stays on the platforms that are not ``broken``; ``unknown`` stays.
    """
    matrix = judging.matrix
    includes = set(matrix.includes)
    kept: dict[Cell, tuple[Platform, ...]] = {}
    impossible: dict[Cell, Mapping[Platform, Judgement]] = {}
    overruled: dict[Cell, Judgement] = {}
    missing: set[tuple[Cell, Platform]] = set()
    indexes = _indexes(judging, selection)
    for cell in selection.kept:
        platforms = wanted.platforms(matrix, library, cell, Served(indexes=indexes))
        found = {platform: judging.installable(cell, platform) for platform in platforms}
        possible = tuple(p for p in platforms if found[p].verdict != "broken")
        if cell in includes and not possible:
            overruled[cell] = (
                found[platforms[0]]
                if platforms
                else judging.installable(cell, matrix.images.platforms[0])
            )
            kept[cell] = platforms
        elif possible:
            kept[cell] = possible
            missing.update((cell, p) for p in platforms if p not in possible)
        else:
            every = matrix.images.platforms
            impossible[cell] = found or {p: judging.installable(cell, p) for p in every}
    return Sorting(
        kept=kept,
        impossible=impossible,
        excluded=selection.excluded,
        overruled=overruled,
        served=Served(missing=frozenset(missing), indexes=indexes),
    )


def _indexes(judging: Judging, selection: Selection) -> dict[tuple[Cell, Platform], str]:
    """The index of each cell on each platform, where it is not the plain one."""
    named = {
        name
        for name, options in judging.matrix.frameworks.items()
        if options.indexes != (PLAIN_INDEX,)
    }
    found = {
        (cell, platform): judging.index(cell, platform)
        for cell in selection.kept
        if cell.framework.name in named
        for platform in judging.matrix.images.platforms
    }
    return {pair: index for pair, index in found.items() if index != PLAIN_INDEX}


def needless(judging: Judging, sorting: Sorting) -> Iterator[Problem]:
    """Includes that the axes give already: no exclude and no fact is overruled by them."""
    matrix = judging.matrix
    if not matrix.includes:
        return
    alone = choose(replace(matrix, includes=()))
    given = set(alone.kept) - sorting.overruled.keys()
    for index, cell in enumerate(matrix.includes):
        if cell in given:
            yield matrix.source.problem(
                ("include", index),
                wanted="a cell of its own, or one that an exclude or a fact takes out",
                found=f"{cell.format()}, which the axes give already",
                hint="remove it",
            )


def faults(judging: Judging, sorting: Sorting) -> Iterator[Problem]:
    """Cells that run on no host of the fleet, those of one reason together.

    Shape: a cell of which nobody knows is none.
    """
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell, platforms in sorting.kept.items():
        hosts = judging.hosts(cell, platforms)
        words = {found.verdict for on in hosts for found in on.gpus.values()}
        if hosts and words <= {"broken", "needs-forward-compat"}:
            key = (cell.framework.format(), cell.cuda.format(), _said(hosts))
            groups.setdefault(key, []).append(cell)
    for (framework, cuda, said), cells in groups.items():
        count = f"{len(cells)} cells" if len(cells) != 1 else "1 cell"
        yield judging.matrix.source.problem(
            ("axes", "framework"),
            wanted="a host of the fleet on which it runs",
            found=f"framework={framework} cuda={cuda} ({count}), which runs on none: {said}",
            hint=_nearest(judging, cells[0], sorting.kept[cells[0]])
            or "exclude it, or name a host for it in [fleet]",
            at=_place(judging, cells[0]),
        )


def _place(judging: Judging, cell: Cell) -> tuple[str | int, ...]:
    matrix = judging.matrix
    if cell.framework in matrix.axes.framework:
        return ("axes", "framework", matrix.axes.framework.index(cell.framework))
    return ("include", matrix.includes.index(cell))


def _said(hosts: Sequence[OnHost]) -> str:
    """The reason on each host; hosts of one reason together."""
    reasons: dict[str, list[str]] = {}
    for on in hosts:
        best = on.best
        reasons.setdefault(f"{best.verdict}: {best.decisive[0].text}", []).append(on.host.name)
    texts = [f"{', '.join(names)}: {text}" for text, names in reasons.items()]
    more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more


def _nearest(judging: Judging, cell: Cell, platforms: Sequence[Platform]) -> str:
    """The best single change on any of the hosts."""
    best: tuple[int, str] | None = None
    for host in judging.matrix.fleet:
        for gpu in host.gpus:
            found = judging.at(cell, platforms[0], driver=host.driver, gpu=gpu, with_fixes=True)
            for fix in found.fixes[:1]:
                change = ", ".join(f"{key} {value}" for key, value in fix.change.items())
                rank = ORDER.index(fix.verdict)
                if fix.verdict in RUNS and (best is None or rank > best[0]):
                    best = (rank, f"on {host.name} ({gpu}), {change} would be {fix.verdict}")
    return best[1] if best is not None else ""


def explain_nothing(matrix: Matrix, sorting: Sorting, only: Sequence[str]) -> str:
    """Why nothing is kept: the entry of ``only`` that names no value, excludes, or facts."""
    if not sorting.impossible:
        return explain_choice(matrix, only)
    reasons: dict[str, int] = {}
    for verdicts in sorting.impossible.values():
        text = next(iter(verdicts.values())).decisive[0].text
        reasons[text] = reasons.get(text, 0) + 1
    texts = [f"{count} cannot be: {text}" for text, count in reasons.items()]
    texts += [f"{len(sorting.excluded)} are excluded"] if sorting.excluded else []
    asked = " ".join(f"--only {text}" for text in only)
    total = len(sorting.impossible) + len(sorting.excluded)
    return f"none of {total} cells{f' of {asked}' if asked else ''} is kept: {'; '.join(texts)}"


def warnings(judging: Judging, sorting: Sorting) -> Iterator[str]:
    """What is not known, overruled, served by nothing, or stands on what goes away."""
    yield from _unknown(judging, sorting)
    yield from _bases(judging, sorting)
    for cell, found in sorting.overruled.items():
        yield f"{cell.format()}: kept as an include, and {found.summary}"
    for host in judging.matrix.fleet if sorting.kept else ():
        yield from _unserved(judging, sorting, host)


def _bases(judging: Judging, sorting: Sorting) -> Iterator[str]:
    """Images of NVIDIA under kept cells whose tags ended or move."""
    for os in dict.fromkeys(cell.os for cell in sorting.kept):
        for source in judging.matrix.bases[os].sources:
            if NVIDIA.fullmatch(source):
                for reason in about(source, judging.facts):
                    facts = " ".join(f"[{used.id}]" for used in reason.facts)
                    yield f"base {os}: {source}: {reason.text} {facts}".rstrip()


def _unknown(judging: Judging, sorting: Sorting) -> Iterator[str]:
    groups: dict[str, list[Cell]] = {}
    for cell in unknown(judging, sorting):
        groups.setdefault(_open_question(judging, sorting, cell), []).append(cell)
    for text, cells in groups.items():
        count = f"{len(cells)} kept cells" if len(cells) != 1 else "1 kept cell"
        yield f"{count}, as {quoted(cells[0].format())}: {text}"


def unknown(judging: Judging, sorting: Sorting) -> tuple[Cell, ...]:
    """Kept cells of which nobody knows whether they install, or run on any host of the fleet."""
    return tuple(
        cell
        for cell in sorting.kept
        if cell not in sorting.overruled and _open_question(judging, sorting, cell)
    )


def _open_question(judging: Judging, sorting: Sorting, cell: Cell) -> str:
    platforms = sorting.kept[cell]
    for platform in platforms:
        found = judging.installable(cell, platform)
        if found.verdict == "unknown":
            where = f" on {platform.format()}" if len(platforms) > 1 else ""
            return f"unknown{where}: {found.decisive[0].text}"
    bests = [on.best for on in judging.hosts(cell, platforms)]
    if not bests or any(best.verdict in RUNS for best in bests):
        return ""
    texts = [best.decisive[0].text for best in bests if best.verdict == "unknown"]
    return f"unknown on every host: {texts[0]}" if texts else ""


def _unserved(judging: Judging, sorting: Sorting, host: Host) -> Iterator[str]:
    found = [
        judgement
        for cell, platforms in sorting.kept.items()
        for on in judging.hosts(cell, platforms)
        if on.host == host
        for judgement in on.gpus.values()
    ]
    if any(each.verdict in RUNS for each in found):
        return
    best = max(found, key=lambda each: ORDER.index(each.verdict))
    yield (
        f"host {host.name}: no kept cell is known to run there; the best is {best.verdict}: "
        f"{best.decisive[0].text}"
    )
