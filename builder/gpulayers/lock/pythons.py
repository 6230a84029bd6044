"""Where a Python comes from: Debian's packages, or a standalone build at an exact version."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from gpulayers.engine import process
from gpulayers.errors import ProjectError, ToolError
from gpulayers.lock.model import LockedPython
from gpulayers.lock.wheels import uv_program
from gpulayers.refs import Platform

Standalone = Callable[[str, Sequence[Platform], Path], str]


def newest_standalone(python: str, platforms: Sequence[Platform], config: Path) -> str:
    """The newest release of a Python (``3.12.16``) that uv has a build of for all platforms.

    uv carries the list with it, so nothing is asked of the network.
    Raises: ProjectError: there is none; ToolError: uv cannot say.
    """
    argv = [uv_program(), "python", "list", python, f"--config-file={config}"]
    argv += ["--all-versions", "--all-platforms", "--all-arches", "--only-downloads"]
    argv += ["--output-format=json"]
    done = process.run(argv, timeout_s=60)
    if not done.ok:
        said = "\n".join(f"  {line}" for line in done.tail(5))
        msg = f"uv could not say which builds of Python {python} there are:\n{said}"
        raise ToolError(msg, hint="wanted: uv 0.8 or newer")
    return pick(read_builds(done.stdout), python, platforms)


def pick(builds: Sequence[tuple[str, str]], python: str, platforms: Sequence[Platform]) -> str:
    """The newest final release among builds (version, machine) that every platform has.

    Raises: ProjectError: there is none; names the platforms without any.
    """
    found = {
        platform: {
            version
            for version, machine in builds
            if machine == platform.machine
            and version.startswith(f"{python}.")
            and _is_final(version)
        }
        for platform in platforms
    }
    common = set.intersection(*found.values())
    if not common:
        lacking = [each.format() for each, versions in found.items() if not versions]
        msg = f"uv has no standalone Python {python} for {', '.join(lacking) or 'all platforms'}"
        raise ProjectError(msg, hint="take another Python, or a newer uv")
    return max(common, key=Version)


def _is_final(text: str) -> bool:
    try:
        return not Version(text).is_prerelease
    except InvalidVersion:
        return False


def read_builds(text: str) -> tuple[tuple[str, str], ...]:
    """Version and machine of each plain CPython for Linux with glibc in uv's JSON.

    Raises: ToolError: uv's answer is no list of builds.
    """
    try:
        rows: object = json.loads(text)
    except ValueError as error:
        msg = f"uv's list of Pythons is no JSON: {error}"
        raise ToolError(msg, hint="wanted: uv 0.8 or newer") from error
    return tuple(_builds(rows if isinstance(rows, list) else []))


def _builds(rows: Sequence[object]) -> Iterator[tuple[str, str]]:
    plain = {"implementation": "cpython", "os": "linux", "libc": "gnu", "variant": "default"}
    for row in rows:
        if isinstance(row, dict) and all(row.get(key) == value for key, value in plain.items()):
            yield str(row.get("version")), str(row.get("arch"))


def choose(
    python: str, sources: Sequence[str], *, tools_suite: str, standalone: Callable[[str], str]
) -> LockedPython:
    """The first source that has a Python.

    Shape: ``tools_suite`` is the Debian suite of the tools' base, "" where unknown.
    Raises: ProjectError: none has it.
    """
    for source in sources:
        kind, _, suite = source.partition(":")
        if kind == "debian" and _has_debian(python, suite, tools_suite):
            return LockedPython(python=python, source="debian", version=python)
        if kind == "standalone":
            return LockedPython(python=python, source="standalone", version=standalone(python))
    msg = f"no source gave Python {python}: {', '.join(sources)}"
    raise ProjectError(
        msg, hint=f'Debian 12 has 3.11; for others put "standalone" into [python."{python}"]'
    )


def _has_debian(python: str, suite: str, tools_suite: str) -> bool:
    # The packages are unpacked in the tools' base, so they are those of its release.
    return (python, suite) == ("3.11", "bookworm") and tools_suite in {"", suite}
