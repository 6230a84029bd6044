"""What `list` says of cells: kept, impossible with the fact, excluded with the choice."""

import json
import math
from collections.abc import Collection, Iterator, Sequence

from gpulayers.cli.loaded import Loaded
from gpulayers.cli.verdicts import fix_text, wrapped
from gpulayers.compat.model import Judgement
from gpulayers.matrix import tags
from gpulayers.matrix.model import AXES, Cell
from gpulayers.matrix.select import columns, spelled
from gpulayers.plan.verdicts import OnHost
from gpulayers.refs import Platform

START = " " * 11


def lines(found: Loaded, *, why: bool) -> Iterator[str]:
    """One line a cell; with ``why`` the reasons, in 80 columns, cells of one reason together."""
    for cell, tag in tags.tags(found.matrix, found.cells).items():
        yield f"kept       {tag}"
        if why:
            yield from _kept(found, cell)
    if why:
        for cells in _alike(found):
            yield from _impossible(found, cells)
    else:
        yield from (f"impossible {cell.format()}" for cell in found.sorting.impossible)
    if why:
        yield from _excluded(found)
    else:
        yield from (f"excluded   {cell.format()}" for cell, _ in found.sorting.excluded)


def as_json(found: Loaded, *, why: bool) -> str:
    """The same as JSON, a cell a line: ten thousand are written at once and read by eye."""
    parts = [
        f"  {json.dumps(name)}: [{_entries(entries)}]"
        for name, entries in _document_of(found, why=why).items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}"


def _entries(entries: Sequence[object]) -> str:
    body = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    return f"\n{body}\n  " if body else ""


def _document_of(found: Loaded, *, why: bool) -> dict[str, list[dict[str, object]]]:
    """The lists by name.

    Shape: ``kept`` have their tag, and with ``why`` ``install`` and ``platforms`` by platform and
    ``hosts`` by host and GPU; ``impossible`` have ``platforms``, with fixes where ``why`` asks.
    """
    return {
        "kept": [
            {
                "tag": tag,
                "cell": cell.values(),
                **(_kept_document(found, cell) if why else {}),
            }
            for cell, tag in tags.tags(found.matrix, found.cells).items()
        ],
        "impossible": [
            {
                "cell": cell.values(),
                "platforms": {
                    platform.format(): _document(
                        found.judging.explained(cell, platform) if why else judged
                    )
                    for platform, judged in verdicts.items()
                },
            }
            for cell, verdicts in found.sorting.impossible.items()
        ],
        "excluded": [
            {"cell": cell.values(), "reason": exclude.reason, "line": exclude.line}
            for cell, exclude in found.sorting.excluded
        ],
    }


def _kept_document(found: Loaded, cell: Cell) -> dict[str, object]:
    platforms = found.sorting.kept[cell]
    every = found.matrix.images.platforms
    first = platforms[0] if platforms else every[0]
    return {
        "install": _document(found.judging.installable(cell, first)),
        "platforms": {p.format(): _document(found.judging.installable(cell, p)) for p in every},
        "hosts": {
            on.host.name: {gpu: _document(judged) for gpu, judged in on.gpus.items()}
            for on in found.judging.hosts(cell, platforms)
        },
    }


def _kept(found: Loaded, cell: Cell) -> Iterator[str]:
    platforms = found.sorting.kept[cell]
    for platform in found.matrix.images.platforms:
        judged = found.judging.installable(cell, platform)
        if platform not in platforms and judged.verdict == "broken":
            yield from wrapped(f"{START}not on {platform.format()}: ", judged.line)
        elif judged.verdict != "ok":
            yield from wrapped(f"{START}facts: ", judged.line)
    for on in found.judging.hosts(cell, platforms):
        yield from _on_host(on)


def _on_host(on: OnHost) -> Iterator[str]:
    words: dict[str, list[str]] = {}
    for gpu, found in on.gpus.items():
        words.setdefault(found.line, []).append(gpu)
    for said, gpus in words.items():
        yield from wrapped(f"{START}{on.host.name}: ", f"{', '.join(gpus)}: {said}")


def _alike(found: Loaded) -> Iterator[list[Cell]]:
    """The impossible cells in groups that one line can name: of one reason and one framework."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell, verdicts in found.sorting.impossible.items():
        said = tuple(
            f"{platform.format()} {judged.line} {_nearest(found.judging.explained(cell, platform))}"
            for platform, judged in verdicts.items()
        )
        groups.setdefault((cell.framework.format(), *said), []).append(cell)
    for cells in groups.values():
        yield from _products(cells, ("cuda", "python", "os", "model"))


def _products(cells: Sequence[Cell], split_by: Sequence[str]) -> Iterator[list[Cell]]:
    """The cells in groups that are all combinations of their values, split no more than needed."""
    size = math.prod(len(_values(cells, axis)) for axis in AXES)
    if size == len(cells) or not split_by:
        yield list(cells)
        return
    for value in _values(cells, split_by[0]):
        part = [cell for cell in cells if cell.values()[split_by[0]] == value]
        yield from _products(part, split_by[1:])


def _values(cells: Sequence[Cell], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.values()[axis] for cell in cells))


def _named(found: Loaded, cells: Sequence[Cell], always: Collection[str]) -> str:
    """How many, and their values on the axes where they do not have all."""
    named = []
    for axis, column in columns(found.matrix.axes).items():
        values = _values(cells, axis)
        if axis in always or set(values) != set(map(spelled, column)):
            named.append(f"{axis}={','.join(values)}")
    count = f"{len(cells)} cells" if len(cells) != 1 else "1 cell"
    return f"{count}: {' '.join(named) or 'all'}"


def _excluded(found: Loaded) -> Iterator[str]:
    groups: dict[int, list[Cell]] = {}
    reasons: dict[int, str] = {}
    for cell, exclude in found.sorting.excluded:
        groups.setdefault(exclude.line, []).append(cell)
        reasons[exclude.line] = exclude.reason
    for line, cells in groups.items():
        for part in _products(cells, ("framework", "cuda", "python", "os", "model")):
            yield from wrapped("excluded   ", _named(found, part, ()))
            yield from wrapped(START, f"{reasons[line]} (matrix.toml:{line})")


def _impossible(found: Loaded, cells: Sequence[Cell]) -> Iterator[str]:
    """A group: its values on the axes where it has not all, the reason, the nearest that works."""
    yield from wrapped("impossible ", _named(found, cells, ("framework", "cuda")))
    verdicts = found.sorting.impossible[cells[0]]
    told: dict[str, list[Platform]] = {}
    for platform, judged in verdicts.items():
        told.setdefault(judged.line, []).append(platform)
    several = len(found.matrix.images.platforms) > 1
    below: dict[str, None] = {}
    for said, platforms in told.items():
        where = f"{', '.join(p.format() for p in platforms)}: " if several else ""
        yield from wrapped(START, f"{where}{said}")
        judged = found.judging.explained(cells[0], platforms[0])
        texts = [f"source: {used.source}" for used in judged.decisive[0].facts[:1]]
        texts += [text for text in (_nearest(judged),) if text]
        below |= dict.fromkeys(texts)
    for text in below:
        yield from wrapped(START, text, longer=2)


def _nearest(judged: Judgement) -> str:
    return f"nearest: {fix_text(judged.fixes[0])}" if judged.fixes else ""


def _document(found: Judgement) -> dict[str, object]:
    decisive = found.decisive if found.verdict != "ok" else ()
    made: dict[str, object] = {
        "verdict": found.verdict,
        "summary": found.summary,
        "rules": [reason.rule for reason in decisive],
        "facts": list(found.facts),
    }
    if found.fixes:
        made["fixes"] = [{"change": dict(f.change), "verdict": f.verdict} for f in found.fixes]
    return made
