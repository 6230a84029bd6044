"""What `list --why` says of kept cells: the facts' word, and one for each host of the fleet."""

from collections.abc import Iterator, Mapping, Sequence

from gpulayers.cli.verdicts import wrapped
from gpulayers.compat.model import Judgement
from gpulayers.matrix.model import Cell, Matrix
from gpulayers.plan.verdicts import CellVerdict, Judging, OnHost

START = " " * 10


def kept(matrix: Matrix, cells: Sequence[Cell]) -> Mapping[Cell, tuple[str, ...]]:
    """Lines below each kept cell, for 80 columns.

    Raises: FactError: the fleet has a GPU or a driver that nobody knows.
    """
    return {cell: tuple(_lines(each)) for cell, each in _verdicts(matrix, cells).items()}


def documents(matrix: Matrix, cells: Sequence[Cell]) -> Mapping[Cell, dict[str, object]]:
    """The same as JSON: ``install`` and ``hosts``, the latter by host and GPU."""
    return {
        cell: {
            "install": _document(each.install),
            "hosts": {
                on.host.name: {gpu: _document(found) for gpu, found in on.gpus.items()}
                for on in each.hosts
            },
        }
        for cell, each in _verdicts(matrix, cells).items()
    }


def _verdicts(matrix: Matrix, cells: Sequence[Cell]) -> Mapping[Cell, CellVerdict]:
    """Of the first platform: what differs on others is not told yet."""
    judging = Judging(matrix)
    return {cell: judging.of(cell, matrix.images.platforms[0]) for cell in cells}


def _lines(verdict: CellVerdict) -> Iterator[str]:
    if verdict.install.verdict != "ok":
        yield from wrapped(f"{START}facts: ", _said(verdict.install))
    for on in verdict.hosts:
        yield from _on_host(on)


def _on_host(on: OnHost) -> Iterator[str]:
    words: dict[str, list[str]] = {}
    for gpu, found in on.gpus.items():
        words.setdefault(_said(found), []).append(gpu)
    for said, gpus in words.items():
        yield from wrapped(f"{START}{on.host.name}: ", f"{', '.join(gpus)}: {said}")


def _said(found: Judgement) -> str:
    """The word, the reason that decided it, and the fact that it stands on."""
    if found.verdict == "ok":
        return "ok"
    reason = found.decisive[0]
    fact = f" [{reason.facts[0].id}]" if reason.facts else ""
    return f"{found.verdict}: {reason.text}{fact}"


def _document(found: Judgement) -> dict[str, object]:
    decisive = found.decisive if found.verdict != "ok" else ()
    return {
        "verdict": found.verdict,
        "summary": found.summary,
        "rules": [reason.rule for reason in decisive],
        "facts": list(dict.fromkeys(used.id for r in decisive for used in r.facts)),
    }
