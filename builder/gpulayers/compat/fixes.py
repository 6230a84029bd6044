"""What would make it better: single changes, found in the facts and judged by the same rules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gpulayers.compat.model import ORDER, PLAIN_CUDA, Fix, Judgement, Query
from gpulayers.facts import find
from gpulayers.facts.model import Build, Facts, Gpu
from gpulayers.refs import Platform
from gpulayers.versions import Dotted, MajorMinor, Pin

Change = tuple[Mapping[str, str], Query]
MOST = 6
MOST_OF_A_KIND = 2
# Releases to each side of the one that was asked for.
NEAR = 8
CUDNN = "nvidia-cudnn-cu12"
# The last cuDNN for CUDA 12 with Maxwell, Pascal and Volta: fact cudnn/range/9.10-9.10-cu12.
LAST_OLD_CUDNN = "9.10.2.21"


def search(
    query: Query, facts: Facts, now: Judgement, judge: Callable[[Query], Judgement]
) -> tuple[Fix, ...]:
    """The nearest changes that are better, best first, then in the order of the kinds.

    Shape: at most ``MOST``, and at most ``MOST_OF_A_KIND`` of one kind.
    """
    found: list[tuple[int, int, str, Fix]] = []
    for rank, (change, changed) in enumerate(_changes(query, facts, now)):
        then = judge(changed)
        if ORDER.index(then.verdict) > ORDER.index(now.verdict):
            fix = Fix(change=change, verdict=then.verdict, text=then.summary)
            found.append((-ORDER.index(then.verdict), rank, next(iter(change)), fix))
    kept: list[Fix] = []
    kinds: dict[str, int] = {}
    for _, _, kind, fix in sorted(found, key=lambda each: each[:2]):
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= MOST_OF_A_KIND and len(kept) < MOST:
            kept.append(fix)
    return tuple(kept)


def _changes(query: Query, facts: Facts, now: Judgement) -> Iterator[Change]:
    yield from _indexes(query, facts)
    yield from _variants(query, facts)
    yield from _drivers(query, facts, now)
    yield from _pythons(query, facts)
    yield from _packages(query, facts)
    yield from _systems(query, facts)
    yield from _platforms(query, facts)
    yield from _releases(query, facts)
    yield from _modes(query)


def _indexes(query: Query, facts: Facts) -> Iterator[Change]:
    """An index that serves what was asked for, where only some are asked."""
    if query.indexes is not None:
        every = find.builds_of(facts, query.framework.name, query.framework.version)
        for name in dict.fromkeys(build.index for build in every):
            if name not in query.indexes:
                yield {"index": name}, replace(query, indexes=(*query.indexes, name))


def _variants(query: Query, facts: Facts) -> Iterator[Change]:
    platform = query.platform.format()
    builds = find.builds_of(facts, query.framework.name, query.framework.version, platform)
    for build in reversed(builds):
        if query.cuda is not None and query.indexes is not None:
            # A cell of a matrix: its axis is CUDA.
            for cuda in _cudas(query.cuda, build, facts):
                yield {"cuda": cuda.format()}, replace(query, cuda=cuda)
        elif build.variant not in {query.variant, "unknown"}:
            changed = replace(query, variant=build.variant, cuda=None)
            yield {"variant": build.variant}, changed


def _cudas(now: MajorMinor, build: Build, facts: Facts) -> list[MajorMinor]:
    """The releases of CUDA that a build may be for: its own, or those of its major, nearest first.

    Shape: without the one there is now; the nearest has the same major and the nearest minor.
    """
    own = (
        [build.cuda]
        if build.cuda is not None
        else [each.release for each in facts.toolkits if each.release.major == build.cuda_major]
    )
    found = [release for release in dict.fromkeys(own) if release != now]
    return sorted(found, key=lambda release: abs(release.minor - now.minor))


def _drivers(query: Query, facts: Facts, now: Judgement) -> Iterator[Change]:
    if not query.driver:
        return
    wanted = now.required_driver
    newest = [each.newest for each in facts.branches.values() if each.newest is not None]
    for version in dict.fromkeys((wanted.minimum, wanted.native, *newest)):
        if version is not None and _is_newer(version, query.driver):
            yield {"driver": version.text}, replace(query, driver=version.text)
    for version in reversed(newest):
        if not _is_newer(version, query.driver):
            yield {"driver": version.text}, replace(query, driver=version.text)


def _is_newer(version: Dotted, than: str) -> bool:
    return not than.lower().startswith("jetpack") and version > Dotted.parse(than)


def _pythons(query: Query, facts: Facts) -> Iterator[Change]:
    platform = query.platform.format()
    for build in find.builds_of(facts, query.framework.name, query.framework.version, platform):
        known = sorted(build.pythons, key=lambda p: _apart(p, query.python))
        if query.python and query.python not in build.pythons:
            for python in known[:MOST_OF_A_KIND]:
                yield {"python": python}, replace(query, python=python)
            return


def _apart(python: str, wanted: str) -> tuple[int, bool]:
    minor, other = (int(text.rstrip("t").split(".")[1]) for text in (python, wanted or "3.0"))
    return abs(minor - other), python.endswith("t")


def _packages(query: Query, facts: Facts) -> Iterator[Change]:
    """Versions of the packages beside it that belong to it; a cuDNN for older GPUs."""
    for package in query.packages:
        others = tuple(each for each in query.packages if each != package)
        for pairing in reversed(find.pairings_of(facts, package.name, query.framework.name)):
            pin = Pin(package.name, pairing.version)
            yield {"with": pin.format()}, replace(query, packages=(*others, pin))
    others = tuple(each for each in query.packages if each.name != CUDNN)
    pin = Pin(CUDNN, LAST_OLD_CUDNN)
    yield {"with": pin.format()}, replace(query, packages=(*others, pin))


def _systems(query: Query, facts: Facts) -> Iterator[Change]:
    if query.os:
        family = query.os.rstrip("0123456789.")
        for name in sorted(facts.libcs, key=lambda name: (not name.startswith(family), name)):
            yield {"os": name}, replace(query, os=name)


def _platforms(query: Query, facts: Facts) -> Iterator[Change]:
    gpu = find.gpu(facts, query.gpu) if query.gpu else None
    for text in ("linux/amd64", "linux/arm64"):
        platform = Platform.parse(text)
        fits = not isinstance(gpu, Gpu) or platform.machine in gpu.hosts
        if platform != query.platform and fits:
            yield {"platform": text}, replace(query, platform=platform)


def _releases(query: Query, facts: Facts) -> Iterator[Change]:
    """The releases around, the nearest first, in the same variant and as plainly installed."""
    name, version = query.framework.name, query.framework.version
    versions = find.versions_of(facts, name)
    if name == PLAIN_CUDA or not versions:
        return
    at = versions.index(version) if version in versions else len(versions)
    near = sorted(range(len(versions)), key=lambda index: abs(index - at))
    for index in near[: 2 * NEAR]:
        if index != at:
            pin = Pin(name, versions[index])
            yield {"framework": pin.format()}, replace(query, framework=pin)


def _modes(query: Query) -> Iterator[Change]:
    if query.base and query.toolkit_mode == "legacy":
        yield {"toolkit-mode": "cdi"}, replace(query, toolkit_mode="cdi")
