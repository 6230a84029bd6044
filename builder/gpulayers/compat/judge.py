"""The verdict on a combination: all rules, in their order; the worst word wins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpulayers.compat import bases, coverage, drivers, fixes, floors, install
from gpulayers.compat.model import (
    ORDER,
    Judgement,
    Query,
    Reason,
    RequiredDriver,
    Word,
)
from gpulayers.compat.subject import Subject, choose
from gpulayers.facts import find
from gpulayers.facts.model import WEAK, Branch, ComputeCapability, Facts, Gpu, JetPack
from gpulayers.versions import Dotted, MajorMinor

NO_DRIVER = RequiredDriver(minimum=None, native=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A GPU and its driver, looked up."""

    gpu: Gpu | ComputeCapability
    driver: Dotted | JetPack
    branch: Branch | None

    @property
    def cc(self) -> ComputeCapability:
        """The compute capability."""
        return self.gpu.cc if isinstance(self.gpu, Gpu) else self.gpu


def judge(query: Query, facts: Facts, *, with_fixes: bool = True) -> Judgement:
    """Whether a combination runs, by which facts, and what would.

    Shape: a bare branch as driver is judged by its oldest and its newest patch; where these differ
    the verdict is ``unknown``. Pure.
    Raises: FactError: the GPU or the driver is none; ``query.parse`` has refused it before.
    """
    found = _judge(query, facts)
    if with_fixes and found.verdict != "ok":
        better = fixes.search(query, facts, found, lambda each: _judge(each, facts))
        return replace(found, fixes=better)
    return found


def installable(query: Query, facts: Facts, *, with_fixes: bool = False) -> Judgement:
    """Whether it can be installed at all, whatever the GPU and driver, which may be "" here.

    Shape: ``ok``, ``unknown`` or ``broken``.
    """
    found = _installable(query, facts)
    if with_fixes and found.verdict != "ok":
        better = fixes.search(query, facts, found, lambda each: _installable(each, facts))
        return replace(found, fixes=better)
    return found


def _installable(query: Query, facts: Facts) -> Judgement:
    subject = choose(query, facts)
    title = query.framework.format()
    if isinstance(subject, Reason):
        return _judgement(query, title, (subject,), NO_DRIVER)
    every = (*subject.reasons, *install.rules(query, subject.build, facts))
    reasons = tuple(_no_surer_than_its_fact(reason) for reason in every)
    return _judgement(query, subject.title, reasons, required(subject, facts))


def _judge(query: Query, facts: Facts) -> Judgement:
    driver = find.driver(facts, query.driver)
    if isinstance(driver, JetPack) or len(driver.numbers) > 1:
        return _of(query, driver, facts)
    branch = facts.branches.get(driver.numbers[0])
    oldest = _of(query, driver, facts)
    if branch is None or branch.newest is None:
        return oldest
    newest = _of(query, branch.newest, facts)
    if oldest.verdict == newest.verdict:
        return newest
    return _between(query, oldest, newest, branch)


def _between(query: Query, oldest: Judgement, newest: Judgement, branch: Branch) -> Judgement:
    """A branch whose patches are judged differently."""
    reasons = tuple(
        replace(
            reason,
            outcome="unknown",
            word="unknown",
            text=f"{reason.text}; newer patches of {branch.number} are {newest.verdict}",
        )
        if ORDER.index(reason.word) < ORDER.index(newest.verdict)
        else reason
        for reason in oldest.reasons
    )
    minimum = oldest.required_driver.minimum
    floor = f": from {minimum.text} on" if minimum is not None else ""
    summary = f"It depends on the patch of branch {query.driver}{floor} it is {newest.verdict}."
    return replace(oldest, verdict="unknown", summary=summary, error="", reasons=reasons)


def _of(query: Query, driver: Dotted | JetPack, facts: Facts) -> Judgement:
    host = host_of(facts, find.gpu(facts, query.gpu), driver)
    subject = choose(query, facts)
    if isinstance(subject, Reason):
        title = query.framework.format()
        return _judgement(query, title, (subject,), NO_DRIVER)
    reasons = tuple(rules(query, subject, host, facts))
    return _judgement(query, subject.title, reasons, required(subject, facts))


def host_of(facts: Facts, gpu: Gpu | ComputeCapability, driver: Dotted | JetPack) -> Host:
    """A GPU with a driver, and the branch of that."""
    branch = find.branch_of(facts, driver) if isinstance(driver, Dotted) else None
    return Host(gpu=gpu, driver=driver, branch=branch)


def rules(query: Query, subject: Subject, host: Host, facts: Facts) -> Sequence[Reason]:
    """What every rule says of a build on a host, in the order of the rules."""
    reasons = [*subject.reasons, *install.rules(query, subject.build, facts)]
    reasons += install.machine(query, host.gpu)
    if subject.release is not None:
        of_driver = [
            *drivers.driver_rule(
                subject.release,
                host.gpu,
                host.driver,
                host.branch,
                facts,
                toolkit=subject.build.toolkit,
            )
        ]
        reasons += drivers.gpu_rule(host.gpu, host.driver, host.branch, facts)
        reasons += _of_code(subject, subject.release, host, of_driver, facts)
        reasons += of_driver
        reasons += floors.rules(query, subject, host.cc, facts)
    reasons += bases.of_image(query, host.gpu, host.driver, host.branch, facts)
    if query.base:
        reasons += bases.rules(query, host.gpu, host.driver, host.branch, facts)
    return [_no_surer_than_its_fact(reason) for reason in reasons]


def _no_surer_than_its_fact(reason: Reason) -> Reason:
    """A weak fact breaks nothing: what it alone would decide is not known."""
    if reason.word != "broken" or not reason.facts or reason.facts[0].confidence not in WEAK:
        return reason
    return replace(reason, word="unknown", outcome="unknown", error="")


def _of_code(
    subject: Subject, release: MajorMinor, host: Host, of_driver: Sequence[Reason], facts: Facts
) -> list[Reason]:
    """Whether there is code for the GPU, be it PTX that only forward compatibility compiles."""
    native = _native(release, host, of_driver)
    found = [*coverage.rules(subject, host.cc, native, facts)]
    if any(reason.rule == "ptx" and reason.word == "broken" for reason in found):
        instead = drivers.forward_for_ptx(release, host.gpu, host.branch, facts)
        if instead is not None:
            return [*coverage.rules(subject, host.cc, release, facts), instead]
    return found


def _native(release: MajorMinor, host: Host, of_driver: Sequence[Reason]) -> MajorMinor | None:
    """The newest CUDA whose PTX is compiled there: forward compatibility brings its own."""
    if any(reason.word == "needs-forward-compat" for reason in of_driver):
        return release
    if isinstance(host.driver, JetPack):
        return host.driver.native
    return host.branch.native if host.branch is not None else None


def required(subject: Subject, facts: Facts) -> RequiredDriver:
    """The drivers that a build needs, whatever the GPU."""
    release = subject.release
    if release is None:
        return NO_DRIVER
    wanted = subject.build.toolkit
    floor = drivers.floor_of(facts, release, wanted)
    natives = [
        each.native_driver
        for each in find.toolkits_of(facts, release)
        if wanted is None or wanted.release != release or each.version == wanted
    ]
    return RequiredDriver(
        minimum=floor[0] if floor is not None else None, native=natives[0] if natives else None
    )


def _judgement(
    query: Query, title: str, reasons: tuple[Reason, ...], driver: RequiredDriver
) -> Judgement:
    words = [reason.word for reason in reasons]
    verdict: Word = min(words, key=ORDER.index, default="unknown")
    decisive = [reason for reason in reasons if reason.word == verdict]
    error = next((r.error for r in decisive if r.error), "") if verdict != "ok" else ""
    return Judgement(
        verdict=verdict,
        summary=_summary(query, title, verdict, decisive),
        error=error,
        reasons=reasons,
        fixes=(),
        required_driver=driver,
    )


def _summary(query: Query, title: str, verdict: Word, decisive: Sequence[Reason]) -> str:
    if not query.gpu:
        said = {"broken": "cannot be installed", "unknown": "is not known to install"}
        why = f": {decisive[0].text}" if verdict in said else ""
        return f"{title} {said.get(verdict, 'can be installed')}{why}."
    where = f"on {query.gpu} with driver {query.driver}"
    if query.driver.lower().startswith("jetpack"):
        where = f"on {query.gpu} with {query.driver}"
    words = {
        "ok": "runs",
        "ok-minor-compat": "runs by minor-version compatibility",
        "needs-forward-compat": "needs forward compatibility",
        "unknown": "is not known to run",
        "broken": "does not run",
    }
    if verdict == "ok":
        return f"{title} {words[verdict]} {where}."
    return f"{title} {words[verdict]} {where}: {decisive[0].text}."
