"""Floors of libraries and of the framework itself on the GPU."""

import re
from collections.abc import Iterator
from dataclasses import replace

from packaging.specifiers import SpecifierSet

from gpulayers.compat.model import Query, Reason
from gpulayers.compat.reasons import failed, passed, unknown, warned
from gpulayers.compat.subject import Subject
from gpulayers.facts import find
from gpulayers.facts.model import Build, ComputeCapability, CudnnRange, Facts
from gpulayers.versions import Dotted, VersionError

CUDNN = "nvidia-cudnn-cu"
EXACT = re.compile(r"==([0-9.]+)", re.ASCII)
NO_CUDNN = "CUDNN_STATUS_ARCH_MISMATCH"


def rules(query: Query, subject: Subject, cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    """What cuDNN and the framework ask of the GPU."""
    if subject.release is None:
        return
    yield from _cudnn(query, subject.build, cc, facts)
    yield from _framework(subject, cc)


def _framework(subject: Subject, cc: ComputeCapability) -> Iterator[Reason]:
    build = subject.build
    if build.low is None:
        return
    text = (
        f"{build.package} supports compute capability {build.low.format()} and up by its own word"
    )
    if cc >= build.low:
        yield passed("framework-floor", text, build.origin)
    elif build.code == "torch":
        # vLLM's floor is general knowledge: it can warn of what it does not decide.
        yield unknown("framework-floor", f"{text}, not {cc.format()}", build.origin)
    else:
        yield failed("framework-floor", f"{text}, not {cc.format()}", build.origin)


def _cudnn(query: Query, build: Build, cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    major = build.cuda_major or 0
    name = f"{CUDNN}{major}"
    asked = next((each.version for each in query.packages if each.name == name), "")
    exact = asked or build.cudnn or exact_pin(build, name)
    if exact:
        yield from _of_version(exact, major, cc, facts)
    elif name in build.pins:
        yield from _of_newest(build, build.pins[name], major, cc, facts)
    elif build.code == "wheel":
        yield from _as_others(build, major, cc, facts)


def _as_others(build: Build, major: int, cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    """A build whose cuDNN nobody read: that of its release's other builds makes it doubtful."""
    others = find.builds_of(facts, build.package, build.version)
    version = next((each.cudnn for each in others if each.cudnn), "")
    for reason in _of_version(version, major, cc, facts) if version else ():
        if reason.word == "broken":
            text = f"{reason.text}; which cuDNN {build.variant} has was not read, others have that"
            yield replace(reason, outcome="unknown", word="unknown", text=text, error="")


def exact_pin(build: Build, package: str) -> str:
    """The one version that a build asks for of a package, or ""."""
    match = EXACT.fullmatch(build.pins.get(package, ""))
    return match[1] if match is not None else ""


def _of_version(version: str, major: int, cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    try:
        release = Dotted.parse(version).release
    except VersionError:
        return
    for row in facts.cudnn:
        if row.cuda_major == major and row.first <= release <= row.last:
            yield _against(row, f"cuDNN {version}", cc)
            return
    yield warned("library-floor", f"nothing is known of cuDNN {version} on CUDA {major}")


def _against(row: CudnnRange, title: str, cc: ComputeCapability) -> Reason:
    if row.high is not None and cc.major > row.high.major and not row.origin.is_weak:
        text = f"{title} is for GPUs up to {row.high.format()} by its table, which ends there"
        return unknown("library-floor", text, row.origin)
    if row.low is None or cc >= row.low:
        low = f" from {row.low.format()} on" if row.low is not None else ""
        return passed("library-floor", f"{title} is for GPUs{low}", row.origin)
    text = f"{title} has nothing below {row.low.format()}"
    if row.origin.is_weak:
        return warned("library-floor", f"{text}, as far as is known", row.origin)
    return failed("library-floor", f"{text}: not for {cc.format()}", row.origin, error=NO_CUDNN)


def _allows(spec: SpecifierSet, row: CudnnRange) -> bool:
    """Whether a requirement lets in a cuDNN of the row, be it only its first or its last."""
    return any(
        spec.contains(f"{end.format()}.99", prereleases=True) for end in (row.first, row.last)
    )


def _of_newest(
    build: Build, wanted: str, major: int, cc: ComputeCapability, facts: Facts
) -> Iterator[Reason]:
    """A range takes the newest: the newest rows that it allows, the last of them sure."""
    spec = SpecifierSet(wanted)
    allowed = [row for row in facts.cudnn if row.cuda_major == major and _allows(spec, row)]
    sure = [row for row in allowed if not row.origin.is_weak]
    if not sure:
        return
    rule = facts.rules["newest-of-major"].origin
    newest = max(sure, key=lambda row: row.last)
    title = f"{build.package} asks for cuDNN {wanted} and gets the newest, which"
    if newest.low is None or cc >= newest.low:
        text = f"{title} is for GPUs from {newest.low.format() if newest.low else '?'} on"
        yield passed("library-floor", text, newest.origin, rule)
        return
    text = f"{title} since {newest.first.format()} has nothing below {newest.low.format()}"
    yield failed("library-floor", text, newest.origin, rule, build.origin, error=NO_CUDNN)
