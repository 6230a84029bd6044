"""Closures of wheels through uv: each layer's on top of the ones below, which it cannot change."""

import json
import tempfile
import threading
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from gpulayers.engine import process
from gpulayers.errors import GpulayersError, ProjectError, RemoteError, ToolError
from gpulayers.inputs import plain
from gpulayers.lock.model import PLAIN_INDEX, Wheel
from gpulayers.refs import Platform

# The oldest glibc among the bases that are known (Ubuntu 22.04), so that a wheel fits all of them.
GLIBC = (2, 35)
# sysconfig, which uv asks, fills its table where other threads see it half full (CPython 3.11).
_FINDING_UV = threading.Lock()
# uv's words (0.8 to 0.13) for an index that did not answer, or not us. After a 401 or 403 it goes
# on as if the index had no such package, and says so in a hint.
UNREACHABLE = (
    "Failed to fetch",
    "error sending request",
    "dns error",
    "Connection refused",
    "could not be queried",
    "returned a 403",
    "network was disabled",
)
# No Python of that version is needed, as nothing is built: uv would fetch one, or try for long.
ENVIRONMENT = {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}
NO_SOLUTION = 1  # uv's exit status; anything else is about uv itself
# Best first when tags are equal: the build number, then the name, so that order never decides.
Rank = tuple[int, tuple[int, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to resolve: requirements, what is fixed already, what stands in for which package.

    Shape: ``sources`` are packages with the name of the one index that they may come from.
    """

    python: str
    platform: Platform
    requirements: tuple[str, ...]
    fixed: tuple[Wheel, ...]
    stands_in_for: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] = ()


class Resolve(Protocol):
    """How ``resolve`` is asked."""

    def __call__(
        self, question: Question, *, config: Path, indexes: Mapping[str, str]
    ) -> tuple[Wheel, ...]:
        """The wheels."""


def resolve(
    question: Question, *, config: Path, indexes: Mapping[str, str], cache: Path | None = None
) -> tuple[Wheel, ...]:
    """All wheels that the requirements need, sorted by file name.

    Shape: ``config`` are uv's settings, with the plain index; ``indexes`` has the address of each
    one that ``question.sources`` names. ``cache`` is a folder for what uv is told instead of its
    own, where an index's answer stays true for minutes.
    Raises: ProjectError: no set of wheels fits (uv's own words follow);
        RemoteError: the index cannot be reached; ToolError: uv cannot work.
    """
    with tempfile.TemporaryDirectory(prefix="gpulayers-") as name:
        folder = Path(name)
        argv = _argv(question, folder, config, indexes)
        argv += [] if cache is None else [f"--cache-dir={cache}"]
        done = process.run(argv, cwd=folder, timeout_s=600, env=ENVIRONMENT)
        if not done.ok:
            raise refusal(question, done.code, done.tail(25))
        answer = (folder / "pylock.toml").read_text(encoding="utf-8")
    return read_answer(answer, supported_tags(question.python, question.platform), question.sources)


def read_answer(
    text: str, tags: Mapping[Tag, int], sources: Sequence[tuple[str, str]] = ()
) -> tuple[Wheel, ...]:
    """The best wheel of each package in a pylock.toml, sorted by file name.

    Shape: ``sources`` as in ``Question``.
    Raises: ProjectError: a package has no wheel with such tags; RemoteError: one has no hash.
    """
    packages = tomllib.loads(text).get("packages")
    named = dict(sources)
    found = [
        _choose(item, tags, named.get(canonicalize_name(str(item.get("name"))), PLAIN_INDEX))
        for item in (packages if isinstance(packages, list) else [])
        if isinstance(item, dict)
    ]
    return tuple(sorted(found))


def _argv(question: Question, folder: Path, config: Path, indexes: Mapping[str, str]) -> list[str]:
    # uv takes "this package from that index" of a project only.
    asked = "pyproject.toml" if question.sources else "requirements.in"
    if question.sources:
        (folder / asked).write_text(_project(question, indexes), encoding="utf-8")
    lines = {
        "requirements.in": question.requirements,
        "constraints.txt": tuple(f"{w.name}=={w.version}" for w in question.fixed),
        "overrides.txt": tuple(f"{n}; python_version < '0'" for n in question.stands_in_for),
    }
    for file, content in lines.items():
        (folder / file).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    libc = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
    return [
        *(uv_program(), "pip", "compile", "--quiet", f"--config-file={config}", "--no-progress"),
        f"--python-version={question.python}",
        f"--python-platform={question.platform.machine}-{libc}",
        *("--only-binary=:all:", "--format=pylock.toml", "--output-file=pylock.toml"),
        *("--constraints=constraints.txt", "--overrides=overrides.txt", asked),
    ]


def _project(question: Question, indexes: Mapping[str, str]) -> str:
    """A pyproject.toml of these requirements, with the index of those that have one."""
    asked = {canonicalize_name(Requirement(text).name) for text in question.requirements}
    named = {name: index for name, index in question.sources if name in asked}
    lines = [
        "[project]",
        'name = "question"',
        'version = "0"',
        f"dependencies = {json.dumps(list(question.requirements))}",
        "[tool.uv.sources]",
        *(f'{json.dumps(name)} = {{ index = "{plain(index)}" }}' for name, index in named.items()),
    ]
    for index in dict.fromkeys(named.values()):
        lines += ["[[tool.uv.index]]", f'name = "{plain(index)}"']
        lines += [f"url = {json.dumps(indexes[index])}", "explicit = true"]
    return "\n".join(lines) + "\n"


def uv_program() -> str:
    """The uv that was installed with us, which need not be on PATH."""
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - only locking needs it

        with _FINDING_UV:
            return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return "uv"


def refusal(question: Question, code: int, tail: Sequence[str]) -> GpulayersError:
    """What uv's failure is: nothing fits, the index did not answer, or uv cannot work.

    Shape: ``code`` is uv's exit status, ``tail`` its last lines, without empty ones.
    """
    said = "\n".join(f"  {line}" for line in tail)
    wanted = ", ".join(question.requirements)
    if any(word in said for word in UNREACHABLE):
        msg = f"the package index did not answer for {wanted}:\n{said}"
        return RemoteError(msg, hint="look at the network, login and index settings of uv")
    if code != NO_SOLUTION:
        msg = f"uv could not be asked for {wanted}:\n{said}"
        return ToolError(msg, hint="wanted: uv 0.8 or newer, and settings that it can read")
    msg = (
        f"no set of wheels fits {wanted} with Python {question.python} "
        f"on {question.platform.format()}:\n{said}"
    )
    return ProjectError(msg, hint="change the version, the Python or the CUDA of that cell")


def supported_tags(python: str, platform: Platform) -> dict[Tag, int]:
    """The wheel tags that such a Python takes on our bases, to their rank (0 is the best)."""
    major, minor = (int(part) for part in python.split("."))
    platforms = [f"manylinux_2_{n}_{platform.machine}" for n in range(GLIBC[1], 4, -1)]
    aliases = {"manylinux_2_17": "manylinux2014", "manylinux_2_12": "manylinux2010"}
    aliases["manylinux_2_5"] = "manylinux1"
    for modern, old in aliases.items():
        at = platforms.index(f"{modern}_{platform.machine}")
        platforms.insert(at + 1, f"{old}_{platform.machine}")
    platforms.append(f"linux_{platform.machine}")
    tags = [
        # The ABI by name: its default is that of the Python that runs us.
        *cpython_tags((major, minor), abis=[f"cp{major}{minor}"], platforms=platforms),
        *compatible_tags((major, minor), interpreter=f"cp{major}{minor}", platforms=platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _choose(item: Mapping[str, object], tags: Mapping[Tag, int], index: str) -> Wheel:
    name, version = str(item.get("name")), str(item.get("version"))
    wheels = item.get("wheels")
    ranked: list[tuple[Rank, Wheel]] = []
    for entry in wheels if isinstance(wheels, list) else []:
        wheel = _read_wheel(entry, name=name, version=version, index=index)
        rank = _rank(wheel.file, tags)
        if rank is not None:
            ranked.append((rank, wheel))
    if not ranked:
        msg = f"{name} {version} has no wheel that fits"
        raise ProjectError(msg, hint="take another version; source distributions are not built")
    return min(ranked, key=lambda pair: pair[0])[1]


def _rank(file: str, tags: Mapping[Tag, int]) -> Rank | None:
    """How well a wheel fits, the smaller the better, or None where it does not."""
    try:
        _, _, build, own = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return None  # names from before the rules; no installer takes them
    best = min((tags[tag] for tag in own if tag in tags), default=None)
    number, letters = build or (0, "")
    return None if best is None else (best, (-number, letters), file)


def _read_wheel(entry: object, *, name: str, version: str, index: str) -> Wheel:
    table = entry if isinstance(entry, dict) else {}
    place = table.get("name") or table.get("url") or table.get("path")
    hashes = table.get("hashes")
    sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
    size = table.get("size")
    if not isinstance(place, str) or not isinstance(sha256, str):
        msg = f"the index gives no file and sha256 for {name} {version}: {json.dumps(table)[:200]}"
        raise RemoteError(msg, hint="use an index that serves hashes")
    return Wheel(
        file=unquote(urlsplit(place).path.rpartition("/")[2]),
        name=canonicalize_name(name),
        version=version,
        sha256=sha256,
        size_bytes=size if isinstance(size, int) else 0,
        index=index,
    )
