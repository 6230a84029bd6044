"""Whether there is code for the GPU: SASS, or PTX that the driver compiles."""

from collections.abc import Iterator

from gpulayers.compat.model import PLAIN_CUDA, Reason
from gpulayers.compat.reasons import failed, passed, unknown, warned
from gpulayers.compat.subject import Subject, newest_of
from gpulayers.facts import find
from gpulayers.facts.model import Build, ComputeCapability, Facts, Origin
from gpulayers.versions import MajorMinor

NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"
NO_PTX = "the provided PTX was compiled with an unsupported toolchain"
# Same major, and yet not compatible; Orin (8.7) only before ``ORIN_FROM``. Facts: sass-exclusions.
EXCLUDED = frozenset(
    {
        ((5, 0), (5, 3)),
        ((5, 2), (5, 3)),
        ((6, 0), (6, 2)),
        ((6, 1), (6, 2)),
        ((7, 0), (7, 2)),
        ((10, 0), (10, 1)),
    }
)
ORIN, ORIN_FROM = (8, 7), MajorMinor(13, 2)


def runs_on(sm: ComputeCapability, cc: ComputeCapability, release: MajorMinor) -> bool:
    """Whether SASS for one compute capability runs on a GPU of another."""
    if sm.major != cc.major or sm.minor > cc.minor:
        return False
    two = (sm.major, sm.minor), (cc.major, cc.minor)
    if two[1] == ORIN and two[0] != ORIN:
        return release >= ORIN_FROM
    return two not in EXCLUDED


def rules(
    subject: Subject, cc: ComputeCapability, native: MajorMinor | None, facts: Facts
) -> Iterator[Reason]:
    """SASS, else PTX.

    Shape: ``native`` is the newest CUDA that the driver knows, by forward compatibility where that
    is used; None where it is not known.
    """
    build, release = subject.build, subject.release
    if release is None or not build.published:
        return
    if build.code == "torch":
        yield from _of_torch(subject, cc, native, facts)
    elif build.code == "runtime":
        yield _at_run_time(build, release, cc, facts)
    elif build.code == "wheel":
        origin = subject.code_origin or build.origin
        yield _in_wheel(build, origin, release, cc, native, facts)
        yield from _libraries(subject, cc, facts)
    else:
        text = f"for which GPUs {subject.title} has code was not read"
        yield unknown("sass-coverage", text, build.origin)


def _of_torch(
    subject: Subject, cc: ComputeCapability, native: MajorMinor | None, facts: Facts
) -> Iterator[Reason]:
    version = subject.build.pins.get("torch", "").removeprefix("==")
    for torch in find.builds_of(facts, "torch", version, subject.build.platform):
        if torch.variant == subject.build.variant and subject.release is not None:
            yield _in_wheel(torch, torch.origin, subject.release, cc, native, facts)
            text = f"the kernels that {subject.title} brings beside its torch were not read"
            yield warned("sass-coverage", text, subject.build.origin)
            return
    yield unknown("sass-coverage", f"nothing is known of its torch {version}", subject.build.origin)


def _libraries(subject: Subject, cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    """PTX of the framework is no help where CUDA's own libraries are older than the GPU."""
    toolkits = find.toolkits_of(facts, subject.libraries) if subject.libraries is not None else ()
    if not toolkits or subject.build.package == PLAIN_CUDA or subject.libraries is None:
        return
    sms = frozenset().union(*(each.sms for each in toolkits))
    if not any(runs_on(sm, cc, subject.libraries) for sm in sms):
        text = f"CUDA {subject.libraries.format()} makes code from {min(sms).format()} to "
        text += f"{max(sms).format()}: its libraries may have none for {cc.format()}"
        yield unknown("sass-coverage", text, toolkits[-1].origin)


def _at_run_time(build: Build, release: MajorMinor, cc: ComputeCapability, facts: Facts) -> Reason:
    toolkits = find.toolkits_of(facts, release)
    if not toolkits:
        return unknown("sass-coverage", f"no toolkit of CUDA {release.format()} is known")
    sms = frozenset().union(*(each.sms for each in toolkits))
    origins = tuple(dict.fromkeys((build.origin, toolkits[-1].origin)))
    if cc in sms:
        text = f"CUDA {release.format()} makes code for compute capability {cc.format()}"
        return passed("sass-coverage", text, *origins)
    known = f"CUDA {release.format()} makes code from {min(sms).format()} to {max(sms).format()}"
    if any(runs_on(sm, cc, release) for sm in sms):
        text = (
            f"{known}, but not for {cc.format()} itself: whether it then takes another is not known"
        )
        return unknown("sass-coverage", text, *origins)
    return failed("sass-coverage", f"{known}, not for {cc.format()}", *origins, error=NO_IMAGE)


def _in_wheel(
    build: Build,
    origin: Origin,
    release: MajorMinor,
    cc: ComputeCapability,
    native: MajorMinor | None,
    facts: Facts,
) -> Reason:
    title = f"{build.package} {build.version} ({build.variant})"
    same = facts.rules["sass-same-major"].origin
    found = [sm for sm in build.sms if runs_on(sm, cc, release)]
    if found or cc in build.exact_sms:
        best = max(found) if found else cc
        return passed("sass-coverage", f"{title} has code for {best.format()}", origin, same)
    if any(ptx <= cc for ptx in build.ptx):
        ptx = max(each for each in build.ptx if each <= cc)
        return _compiled(build, origin, release, ptx, native, facts)
    has = ", ".join(sm.format() for sm in sorted(build.sms | build.exact_sms)) or "none"
    text = f"{title} has code for {has}, and nothing that runs on {cc.format()}"
    gap = facts.rules["sass-major-gap"].origin
    return failed("sass-coverage", text, origin, *_exclusion(build, cc, facts), gap, error=NO_IMAGE)


def _exclusion(build: Build, cc: ComputeCapability, facts: Facts) -> tuple[Origin, ...]:
    alike = any(sm.major == cc.major and sm.minor <= cc.minor for sm in build.sms)
    return (facts.rules["sass-exclusions"].origin,) if alike else ()


def _compiled(
    build: Build,
    origin: Origin,
    release: MajorMinor,
    ptx: ComputeCapability,
    native: MajorMinor | None,
    facts: Facts,
) -> Reason:
    """PTX is compiled by a driver that knows the CUDA that made it."""
    rule = facts.rules["ptx"].origin
    made = build.cuda or newest_of(facts, release.major)
    text = f"there is PTX of {ptx.format()}, made by CUDA {made.format()}"
    if native is None:
        return unknown("ptx", f"{text}; what the driver knows is not known", origin, rule)
    if native >= made:
        return passed("ptx", f"{text}: the driver compiles it at the first start", origin, rule)
    text = f"{text}; the driver knows CUDA {native.format()} and cannot compile it"
    if build.cuda is None and native.major == release.major:
        return unknown("ptx", f"{text}, unless an older one made it", origin, rule)
    return failed("ptx", text, origin, rule, error=NO_PTX)
