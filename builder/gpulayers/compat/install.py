"""Whether it can be installed: Python, glibc, machine, and packages that belong together."""

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gpulayers.compat.bases import system_of
from gpulayers.compat.model import PLAIN_CUDA, Query, Reason
from gpulayers.compat.reasons import failed, passed, unknown, warned
from gpulayers.facts import find
from gpulayers.facts.model import Build, Facts, Gpu, Pairing
from gpulayers.versions import Pin

PARTS = ("nvidia-cuda-runtime", "nvidia-cuda-nvcc")
# A patch number beyond all: the newest wheel of a release.
BEYOND = 99999
CUDNN = "nvidia-cudnn-cu"


def rules(query: Query, build: Build, facts: Facts) -> Iterator[Reason]:
    """What installing it depends on, in the order of the rules."""
    if query.python and build.package != PLAIN_CUDA:
        yield _python(query, build)
    os = query.os or system_of(query.base)
    if os:
        yield from _glibc(os, build, facts)
    yield from _parts_of_cuda(query, build)
    for package in query.packages:
        yield _pair(package, build, facts)
        yield from _python_of(package, query.python, build, facts)


def machine(query: Query, gpu: object) -> Iterator[Reason]:
    """Whether the GPU comes in machines of the platform's architecture."""
    if isinstance(gpu, Gpu) and query.platform.machine not in gpu.hosts:
        text = f"{gpu.name} comes in {' and '.join(gpu.hosts)} machines, not in those of "
        # A card can be put into any machine with a slot; what is soldered in cannot.
        judge = unknown if gpu.hosts == ("x86_64",) else failed
        yield judge("cpu-architecture", text + query.platform.format(), gpu.origin)


def _python(query: Query, build: Build) -> Reason:
    title = f"{build.package} {build.version}"
    if not build.pythons:
        return unknown("python", f"for which Pythons {title} has wheels is not known", build.origin)
    known = ", ".join(sorted(build.pythons, key=lambda p: (Version(p.rstrip("t")), p)))
    if query.python in build.pythons:
        return passed("python", f"{title} has a wheel for Python {query.python}", build.origin)
    text = f"{title} has no wheel for Python {query.python}, only for {known}"
    error = f"no matching distribution found for {build.package}=={build.version}"
    return failed("python", text, build.origin, error=error)


def _glibc(os: str, build: Build, facts: Facts) -> Iterator[Reason]:
    if build.glibc is None:
        if build.package != PLAIN_CUDA and build.cuda_major:
            text = f"which glibc {build.package} {build.version} asks for is not known"
            yield unknown("glibc", text, build.origin)
        return
    libc = find.libc_of(facts, os)
    wants = f"the wheel asks for glibc {build.glibc.format()}"
    if libc is None:
        yield unknown("glibc", f"{wants}; which one {os} has is not known", build.origin)
    elif libc.glibc >= build.glibc:
        text = f"{wants}, {os} has {libc.glibc.format()}"
        yield passed("glibc", text, build.origin, libc.origin)
    else:
        text = f"{wants}, {os} has {libc.glibc.format()}"
        error = "is not a supported wheel on this platform"
        yield failed("glibc", text, build.origin, libc.origin, error=error)


def _parts_of_cuda(query: Query, build: Build) -> Iterator[Reason]:
    """Parts of CUDA that it asks for at least, against the release that is wanted."""
    if query.cuda is None:
        return
    for name, wanted in build.pins.items():
        if not name.startswith(PARTS):
            continue
        newest = f"{query.cuda.format()}.{BEYOND}"
        if not SpecifierSet(wanted).contains(newest):
            text = f"{build.package} {build.version} asks for {name}{wanted}, which is not of "
            text += f"CUDA {query.cuda.format()}"
            yield failed("pairs", text, build.origin)


def _pair(package: Pin, build: Build, facts: Facts) -> Reason:
    """A package that it asks for, or that asks for it."""
    title = f"{build.package} {build.version}"
    wanted = pinned(build, package.name)
    if wanted is not None:
        return _asked_for(package, wanted, build)
    if package.name.startswith(CUDNN):
        return _cudnn(package, build, facts)
    if package.name.startswith("nvidia-"):
        text = f"which {package.name} {title} is built for was not written down"
        return unknown("pairs", text, build.origin)
    return _of_other(package, build, facts)


def _python_of(package: Pin, python: str, build: Build, facts: Facts) -> Iterator[Reason]:
    """Whether a package beside it has a wheel for that Python; says nothing where it has one."""
    for pairing in find.pairings_of(facts, package.name, build.package):
        known = pairing.version == package.version and bool(python and pairing.pythons)
        if known and python not in pairing.pythons:
            has = ", ".join(sorted(pairing.pythons, key=lambda p: (Version(p.rstrip("t")), p)))
            text = f"{package.format()} has no wheel for Python {python}, only for {has}"
            yield failed("python", text, pairing.origin)


def _asked_for(package: Pin, wanted: str, build: Build) -> Reason:
    text = f"{build.package} {build.version} asks for {package.name}{wanted}"
    if SpecifierSet(wanted).contains(package.version, prereleases=True):
        return passed("pairs", f"{text}: {package.version} is that", build.origin)
    error = "the requirements cannot be installed"
    return failed("pairs", f"{text}, not {package.version}", build.origin, error=error)


def _of_other(package: Pin, build: Build, facts: Facts) -> Reason:
    """What the other package asks for of this one, by its pairs, or as a framework of its own."""
    known = find.pairings_of(facts, package.name, build.package)
    for pairing in known:
        if pairing.version == package.version:
            return _by_pairing(pairing, build)
    for other in find.builds_of(facts, package.name, package.version):
        wants = other.pins.get(build.package, "")
        if wants:
            text = f"{package.format()} asks for {build.package}{wants}"
            if SpecifierSet(wants).contains(build.version, prereleases=True):
                return passed("pairs", text, other.origin)
            return failed("pairs", f"{text}, not {build.version}", other.origin)
    if known:
        return unknown("pairs", f"nothing is known of {package.format()}", known[-1].origin)
    title = f"{build.package} {build.version}"
    return warned("pairs", f"nothing is known of {package.name} beside {title}", build.origin)


def _cudnn(package: Pin, build: Build, facts: Facts) -> Reason:
    """A cuDNN beside a build that nobody opened: by the major that others of its release have.

    Shape: a wheel of one major of cuDNN does not load another (fact ``rules/rule/cudnn-minor``).
    """
    title = f"{build.package} {build.version}"
    rule = facts.rules["cudnn-minor"].origin
    if build.cuda_major and package.name != f"{CUDNN}{build.cuda_major}":
        text = f"{package.name} is for another CUDA than the {build.cuda_major} of {title}"
        return failed("pairs", text, build.origin)
    others = [each for each in find.builds_of(facts, build.package, build.version) if each.cudnn]
    if not others:
        text = f"for which cuDNN {title} ({build.variant}) is built is not known"
        return unknown("pairs", text, build.origin, rule)
    has = others[0].cudnn
    if has.split(".")[0] != package.version.split(".")[0]:
        text = f"{title} is built for cuDNN {has}, and {package.version} is of another major"
        error = f"libcudnn.so.{has.split('.')[0]}: cannot open shared object file"
        return failed("pairs", text, others[0].origin, rule, error=error)
    text = f"{title} ({others[0].variant}) is built for cuDNN {has}; that of {build.variant} was "
    return warned("pairs", f"{text}not read", others[0].origin, rule)


def _by_pairing(pairing: Pairing, build: Build) -> Reason:
    title = f"{pairing.package} {pairing.version}"
    if not pairing.wants:
        text = f"{title} says nothing of {build.package}: whether they fit is not known"
        return unknown("pairs", text, pairing.origin)
    text = f"{title} asks for {build.package}{pairing.wants}"
    if SpecifierSet(pairing.wants).contains(build.version, prereleases=True):
        return passed("pairs", text, pairing.origin)
    return failed("pairs", f"{text}, not {build.version}", pairing.origin)


def pinned(build: Build, package: str) -> str | None:
    """What a build asks for of another package, as a PEP 440 specifier; None: nothing known."""
    if package == f"{CUDNN}{build.cuda_major}" and build.cudnn:
        return f"=={build.cudnn}"
    return build.pins.get(package)
