"""What is judged: the build that a query means, and the CUDA release that runs with it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpulayers.compat.model import PLAIN_CUDA, Query, Reason, RuleName
from gpulayers.compat.reasons import failed, passed, unknown
from gpulayers.facts import find
from gpulayers.facts.model import DISTRIBUTION_INDEX, Build, Facts, Origin, Toolkit
from gpulayers.versions import MajorMinor

PLAIN = ("", "pypi")
READ = Origin(
    id="image/code", source="read out of the libraries of the image", read="", confidence="binary"
)
# NVIDIA's package of the CUDA runtime has the release in front of its version.
PINNED = re.compile(r"==(\d+\.\d+)\.", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A build with its CUDA.

    Shape: ``release`` is the CUDA release that its driver is judged by, None for a build without
    CUDA; ``libraries`` is that of the libraries installed with it, the newest of the major where
    it asks for a range; ``reasons`` are those of its choice; ``code_origin`` says where its GPU
    code was read, None: where all of the build is from.
    """

    build: Build
    release: MajorMinor | None
    libraries: MajorMinor | None
    reasons: tuple[Reason, ...]
    code_origin: Origin | None = None

    @property
    def title(self) -> str:
        """``torch 2.8.0 (cu128)``."""
        build = self.build
        if build.package == PLAIN_CUDA:
            return f"a program on CUDA {build.version}"
        variant = "" if build.variant == "unknown" else f" ({build.variant})"
        return f"{build.package} {build.version}{variant}"


def choose(query: Query, facts: Facts) -> Subject | Reason:
    """The build that a query means, or why there is none."""
    if query.framework.name == PLAIN_CUDA:
        return _plain(query, facts)
    name, version = query.framework.name, query.framework.version
    known = find.builds_of(facts, name, version)
    here = [build for build in known if build.platform == query.platform.format()]
    if not known:
        return _nothing_known(query, facts)
    if not here:
        text = f"{name} {version} has no wheel for {query.platform.format()}"
        return failed("wheel-exists", text, known[0].origin)
    every = _wanted(query, here)
    if not every:
        return _no_variant(query, here)
    served = [b for b in every if query.indexes is None or b.index in query.indexes]
    if not served:
        return _on_other_index(query, every, here)
    found = min(served, key=lambda build: not build.is_default)
    subject = Subject(
        build=found,
        release=_release(query, found, facts),
        libraries=_libraries(query, found, facts),
        reasons=tuple(_of_build(found)),
    )
    return _as_read(subject, query)


def _as_read(subject: Subject, query: Query) -> Subject:
    """The same with the GPU code that was read out of an image, where some was.

    Shape: a framework that compiles at run time does so whatever its libraries hold; what a person
    says of a program goes first.
    """
    was_read = query.read_sms or query.read_exact_sms or query.read_ptx
    compiles = subject.build.code == "runtime" and subject.build.package != PLAIN_CUDA
    if not was_read or query.sms or query.ptx or compiles:
        return subject
    build = replace(
        subject.build,
        code="wheel",
        sms=query.read_sms,
        exact_sms=query.read_exact_sms,
        ptx=query.read_ptx,
    )
    return replace(subject, build=build, code_origin=READ)


def _nothing_known(query: Query, facts: Facts) -> Reason:
    name, version = query.framework.name, query.framework.version
    known = find.versions_of(facts, name)
    text = f"nothing is known of {name} {version}"
    if known:
        builds = facts.builds[name]
        return unknown("wheel-exists", f"{text}: the facts end at {known[-1]}", builds[-1].origin)
    return unknown("wheel-exists", text)


def _wanted(query: Query, builds: Sequence[Build]) -> list[Build]:
    """The builds that would do, those of the very release of CUDA first."""
    if query.cuda is not None:
        exact = [b for b in builds if b.cuda == query.cuda and not _is_of_major(b)]
        major = [b for b in builds if _is_of_major(b) and b.cuda_major == query.cuda.major]
        return [*exact, *major]
    if query.variant in PLAIN:
        return [b for b in builds if b.is_default]
    return [b for b in builds if b.variant == query.variant]


def _is_of_major(build: Build) -> bool:
    """Whether only the major of its CUDA is fixed: what is installed with it says the rest."""
    return build.variant == f"cu{build.cuda_major}"


def _no_variant(query: Query, builds: Sequence[Build]) -> Reason:
    name, version = query.framework.name, query.framework.version
    names = ", ".join(dict.fromkeys(build.variant for build in builds))
    if query.cuda is None and query.variant in PLAIN:
        text = f"{name} {version} has no plain wheel; name one of its variants: {names}"
        return unknown("wheel-exists", text, *(build.origin for build in builds))
    wanted = f"CUDA {query.cuda.format()}" if query.cuda is not None else query.variant
    text = f"{name} {version} is not built for {wanted}, only as {names}"
    return failed("wheel-exists", text, *(build.origin for build in builds))


def _on_other_index(query: Query, builds: Sequence[Build], here: Sequence[Build]) -> Reason:
    """It is built, and the indexes that are asked do not have it: each serves one variant."""
    name, version = query.framework.name, query.framework.version
    names = " or ".join(dict.fromkeys(build.index for build in builds))
    variants = ", ".join(dict.fromkeys(build.variant for build in builds))
    asked = query.indexes or ()
    text = f"{name} {version} {variants} is served by index {names}, not by {' or '.join(asked)}"
    serve = [build for build in here if build.index in asked and not build.origin.is_weak]
    if serve:
        has = ", ".join(f"{build.index} has {build.variant}" for build in serve)
        return failed("wheel-exists", f"{text}: {has}", *(b.origin for b in (*serve, *builds)))
    origins = [build.origin for build in builds]
    judge = unknown if all(origin.is_weak for origin in origins) else failed
    return judge("wheel-exists", text, *origins)


def _of_build(build: Build) -> list[Reason]:
    title = f"{build.package} {build.version}"
    if not build.published:
        return [failed("wheel-exists", f"{title} {build.variant} was not published", build.origin)]
    if build.cuda_major == 0:
        return [_without_cuda(build, title)]
    if build.cuda_major is None:
        text = f"which CUDA the wheels of {title} have is not known"
        return [unknown("wheel-exists", text, build.origin)]
    if build.origin.is_weak:
        text = f"{title} {build.variant} is {build.origin.confidence}: nobody saw its wheel"
        return [unknown("wheel-exists", text, build.origin)]
    plain = "plain PyPI serves it" if build.index == DISTRIBUTION_INDEX else build.index
    where = plain if build.is_default else f"served by index {build.index}"
    return [passed("wheel-exists", f"{title} {build.variant}: {where}", build.origin)]


def _without_cuda(build: Build, title: str) -> Reason:
    text = f"the plain install of {title} on {build.platform} has no CUDA: it computes on the CPU"
    rule: RuleName = "cpu-architecture" if build.platform == "linux/arm64" else "wheel-exists"
    if build.origin.is_weak:
        return unknown(rule, text, build.origin)
    return failed(rule, text, build.origin)


def _release(query: Query, build: Build, facts: Facts) -> MajorMinor | None:
    if not build.cuda_major:
        return None
    if query.cuda is not None:
        return query.cuda
    if build.toolkit is not None:
        return build.toolkit.release
    asks = f"nvidia-cuda-runtime-cu{build.cuda_major}" in build.pins
    if build.cuda is not None and not (_is_of_major(build) and asks):
        return build.cuda
    return _pinned(build) or newest_of(facts, build.cuda_major)


def _libraries(query: Query, build: Build, facts: Facts) -> MajorMinor | None:
    if query.cuda is None and build.toolkit is None and build.cuda_major and _is_of_major(build):
        return _pinned(build) or newest_of(facts, build.cuda_major)
    return _release(query, build, facts)


def _pinned(build: Build) -> MajorMinor | None:
    """The release of the CUDA runtime that a build asks for exactly; None for a range."""
    wanted = build.pins.get(f"nvidia-cuda-runtime-cu{build.cuda_major}", "")
    match = PINNED.match(wanted)
    return MajorMinor.parse(match[1]) if match is not None else None


def newest_of(facts: Facts, major: int) -> MajorMinor:
    """The newest CUDA release of a major: what a range over NVIDIA's wheels takes."""
    return max(each.release for each in facts.toolkits if each.release.major == major)


def _plain(query: Query, facts: Facts) -> Subject | Reason:
    version = query.framework.version
    for toolkit in facts.toolkits:
        if toolkit.version.text == version:
            subject = Subject(
                build=_program(query, toolkit),
                release=toolkit.release,
                libraries=toolkit.release,
                reasons=(),
            )
            return _as_read(subject, query)
    near = ", ".join(each.version.text for each in facts.toolkits[-3:])
    text = f"there is no CUDA toolkit {version} in the facts; the newest are {near}"
    return unknown("wheel-exists", text, facts.toolkits[-1].origin)


def _program(query: Query, toolkit: Toolkit) -> Build:
    own = bool(query.sms or query.ptx)
    return Build(
        origin=toolkit.origin,
        package=PLAIN_CUDA,
        version=toolkit.version.text,
        variant=f"cu{toolkit.release.compact}",
        platform=query.platform.format(),
        index=DISTRIBUTION_INDEX,
        is_default=True,
        published=True,
        cuda=toolkit.release,
        cuda_major=toolkit.release.major,
        toolkit=toolkit.version,
        pythons=frozenset(),
        glibc=None,
        code="wheel" if own else "runtime",
        sms=query.sms,
        exact_sms=frozenset(),
        ptx=query.ptx,
        low=None,
        floor=None,
        cudnn="",
        pins={},
        release_date="",
    )
