"""Our own ``NVIDIA_REQUIRE_CUDA``: what the judge says of hosts, in the words of NVIDIA's runtime.

Alternatives are apart by blanks, conditions of one by commas (fact ``rules/rule/require``).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from gpulayers.compat import judge
from gpulayers.compat.model import Query, Reason
from gpulayers.compat.subject import Subject, choose
from gpulayers.facts.model import ComputeCapability, Facts
from gpulayers.versions import Dotted

# From one driver on, and up to another one that is not in it; None: no such end.
Span = tuple[Dotted | None, Dotted | None]
# Whether it runs, at each driver; None for a host that cannot be.
Answers = tuple[bool | None, ...]
# The lowest compute capability of several, and the answers that are theirs together.
Run = tuple[ComputeCapability, Answers]
# Nothing of an image changes that: there, no container of any kind would start.
NO_HOST = "gpu-driver-branch"
# Forward compatibility is libraries in the image, and ours have none.
AS_IT_IS = "forward-compat"
# For what runs nowhere: no GPU is so old.
NEVER = "arch<1.0"


def of(query: Query, facts: Facts) -> str:
    """The requirement of an image, whatever the query says of GPU and driver.

    Shape: "" where nothing is known that could be asked for. It refuses what is ``broken`` or would
    need forward compatibility, and admits ``unknown``. On Jetson, whose drivers have no such
    versions, the conditions on drivers are skipped by the runtime.
    """
    subject = choose(query, facts)
    if isinstance(subject, Reason) or subject.release is None:
        return ""
    points = _points(subject, facts)
    capabilities = {gpu.cc for gpu in facts.gpus if gpu.stack == "driver"}
    answers = {
        cc: tuple(_runs(query, subject, cc, driver, facts) for driver in points)
        for cc in capabilities
    }
    if query.platform.machine == "aarch64":
        for cc in _no_jetson(query, subject, facts) - capabilities:
            answers[cc] = (False,) * len(points)
    runs = _together(sorted(answers.items(), key=lambda pair: pair[0]))
    return " ".join(_terms(runs, points)) or NEVER


def _no_jetson(query: Query, subject: Subject, facts: Facts) -> set[ComputeCapability]:
    """Those of Jetson boards that no JetPack runs it on: there, only ``arch`` is looked at."""
    boards = [gpu for gpu in facts.gpus if gpu.stack == "jetpack"]
    may = {
        gpu.cc
        for gpu in boards
        for jetpack in facts.jetpacks
        if not any(
            reason.word in {"broken", "needs-forward-compat"}
            for reason in judge.rules(query, subject, judge.host_of(facts, gpu, jetpack), facts)
        )
    }
    return {gpu.cc for gpu in boards} - may


def _points(subject: Subject, facts: Facts) -> list[Dotted]:
    """The drivers where the answer can change: the start of each branch, and floors."""
    found = {Dotted.parse(f"{number}.0") for number in facts.branches}
    driver = judge.required(subject, facts)
    found |= {each for each in (driver.minimum, driver.native) if each is not None}
    found |= {each.driver for each in facts.minor_floors.values()}
    return sorted(found)


def _runs(
    query: Query, subject: Subject, cc: ComputeCapability, driver: Dotted, facts: Facts
) -> bool | None:
    """Whether it may start; None for a host that cannot be."""
    host = judge.host_of(facts, cc, driver)
    reasons = [
        reason
        for reason in judge.rules(query, subject, host, facts)
        if reason.outcome != "pass" or reason.word == "needs-forward-compat"
    ]
    if any(reason.rule == NO_HOST and reason.word == "broken" for reason in reasons):
        return None
    return not any(
        reason.word in {"broken", "needs-forward-compat"} or reason.rule == AS_IT_IS
        for reason in reasons
    )


def _together(answers: Sequence[tuple[ComputeCapability, Answers]]) -> list[Run]:
    """Runs of compute capabilities that one answer serves: None takes any other's."""
    found: list[Run] = []
    for cc, own in answers:
        last = found[-1][1] if found else ()
        fits = all(None in pair or pair[0] is pair[1] for pair in zip(last, own, strict=False))
        if found and fits:
            merged = tuple(a if b is None else b for a, b in zip(last, own, strict=True))
            found[-1] = (found[-1][0], merged)
        else:
            found.append((cc, own))
    return found


def _terms(runs: Sequence[Run], points: Sequence[Dotted]) -> Iterator[str]:
    """An alternative for each run, and for each span of drivers in it."""
    for index, (low, answers) in enumerate(runs):
        following = runs[index + 1][0] if index + 1 < len(runs) else None
        for oldest, end in _spans(answers, points):
            conditions = (
                ("driver>=", oldest.text if oldest is not None else ""),
                ("driver<", end.text if end is not None else ""),
                ("arch>=", low.format() if index else ""),
                ("arch<", following.format() if following is not None else ""),
            )
            yield ",".join(f"{name}{value}" for name, value in conditions if value)


def _spans(answers: Answers, points: Sequence[Dotted]) -> Iterator[Span]:
    """The drivers that it runs on; hosts that cannot be go along with their neighbours."""
    pairs = zip(points, answers, strict=True)
    blocks = [list(block) for _, block in groupby(pairs, key=lambda pair: pair[1] is False)]
    for index, block in enumerate(blocks):
        if any(answer for _, answer in block):
            following = blocks[index + 1][0][0] if index + 1 < len(blocks) else None
            yield (block[0][0] if index else None, following)
