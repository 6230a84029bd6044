"""Which of several images runs best on a machine: by the judge, then by how new it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.version import Version

from gpulayers.compat.model import ORDER, RUNS, Judgement
from gpulayers.matrix.model import Cell
from gpulayers.plan.verdicts import Judging
from gpulayers.refs import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine: its driver and each kind of GPU in it, as people or NVIDIA's tools spell them.

    Shape: ``machine`` is what ``uname -m`` says, "" where nobody said.
    """

    driver: str
    gpus: tuple[str, ...]
    machine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the image must have; None and "" for whatever there is."""

    framework: Requirement | None = None
    python: str = ""
    model: str = ""
    os: str = ""
    cuda: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An image that could be picked.

    Shape: ``pull`` is what ``docker pull`` takes, "" for one that was not built; ``tag`` is how it
    is called without a channel; ``refused`` says why it may not be pulled, or is "".
    """

    cell: Cell
    platform: Platform
    tag: str
    pull: str = ""
    digest: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said of a candidate: the worst judgement of the machine's GPUs, or why none is.

    Shape: ``aside`` is why it is out of the question, "" where it was judged.
    """

    candidate: Candidate
    judged: Judgement | None
    aside: str = ""

    @property
    def runs(self) -> bool:
        """Whether it may be picked."""
        return self.judged is not None and self.judged.verdict in RUNS

    @property
    def line(self) -> str:
        """Why it is what it is, in a line."""
        return self.judged.line if self.judged is not None else self.aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """All candidates: the best, if any runs, and the others, those that run first."""

    best: Answer | None
    others: tuple[Answer, ...] = field(default=())

    def behind(self, answer: Answer) -> str:
        """Why one that runs is not the best; "" for one that does not run."""
        if self.best is None or self.best.judged is None:
            return ""
        if not answer.runs or answer.judged is None:
            return ""
        word, better = answer.judged.verdict, self.best.judged.verdict
        if word != better:
            return f"runs too, as {word}; the best is {better}"
        mine, its = (each.candidate.cell for each in (answer, self.best))
        if mine.framework.name != its.framework.name:
            return f"runs too ({word}); say --framework {mine.framework.name} for it"
        axes = ("framework", "cuda", "python", "os", "model")
        axis = next((a for a in axes if mine.values()[a] != its.values()[a]), "platform")
        values = [*(cell.values().get(axis, "") for cell in (mine, its))]
        if axis == "platform":
            values = [each.candidate.platform.format() for each in (answer, self.best)]
        return f"runs too ({word}); its {axis} is {values[0]}, the best has {values[1]}"


def choose(judging: Judging, candidates: Sequence[Candidate], host: Host, wish: Wish) -> Choice:
    """The best image for a machine: the better verdict, then the newer framework, CUDA and Python.

    Shape: what is ``unknown`` or needs forward compatibility is never picked: our images carry no
    libraries for that.
    Raises: FactError: the machine has a driver or GPU that nobody knows.
    """
    answers = [_answer(judging, each, host, wish) for each in candidates]
    ranked = sorted(answers, key=_rank, reverse=True)
    if ranked and ranked[0].runs:
        return Choice(best=ranked[0], others=tuple(ranked[1:]))
    return Choice(best=None, others=tuple(ranked))


def _answer(judging: Judging, candidate: Candidate, host: Host, wish: Wish) -> Answer:
    aside = candidate.refused or _unasked(candidate, host, wish)
    if aside:
        return Answer(candidate=candidate, judged=None, aside=aside)
    found = [
        judging.at(candidate.cell, candidate.platform, driver=host.driver, gpu=gpu)
        for gpu in host.gpus
    ]
    return Answer(candidate=candidate, judged=min(found, key=lambda j: ORDER.index(j.verdict)))


def _unasked(candidate: Candidate, host: Host, wish: Wish) -> str:
    """What it has that was not asked for, or ""."""
    cell = candidate.cell
    if host.machine not in {"", candidate.platform.machine}:
        return f"is for {candidate.platform.format()}, the machine is {host.machine}"
    if wish.framework is not None:
        named = wish.framework.name.lower() == cell.framework.name
        if not named or not wish.framework.specifier.contains(
            cell.framework.version, prereleases=True
        ):
            return f"has {cell.framework.format()}, asked for {wish.framework}"
    values = cell.values()
    for axis in ("python", "model", "os", "cuda"):
        asked = getattr(wish, axis)
        if asked and values[axis] != asked:
            return f"has {axis} {values[axis]}, asked for {asked}"
    return ""


def _rank(answer: Answer) -> tuple[object, ...]:
    cell = answer.candidate.cell
    word = ORDER.index(answer.judged.verdict) if answer.judged is not None else -1
    return (
        answer.runs,
        word,
        # Of several frameworks none is better: by name, so that the answer is always the same.
        tuple(-ord(letter) for letter in cell.framework.name),
        Version(cell.framework.version),
        cell.cuda,
        cell.python,
        cell.os,
        cell.model,
    )
