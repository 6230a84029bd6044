"""Files that say what an app needs: requirements.txt, pylock.toml, pyproject.toml."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gpulayers.errors import ProjectError

HASH = re.compile(r"\s--hash[= ](\S+)")
COMMENT = re.compile(r"(^|\s)#.*$")
# Words of pip's own that change nothing here.
HARMLESS = ("--require-hashes", "--no-binary", "--only-binary", "--prefer-binary")
# What a project without a word about it is built with (PEP 518).
SETUPTOOLS = ("setuptools>=40.8.0",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One requirement (PEP 508), and the sha256 of the files that may answer it; none: any."""

    text: str
    sha256: tuple[str, ...]

    @property
    def name(self) -> str:
        """The package, by its normal name."""
        return canonicalize_name(Requirement(self.text).name)


def read(path: Path) -> tuple[Demand, ...]:
    """What a file asks for.

    Raises: ProjectError: it is neither of the two kinds, or has what neither may have.
    """
    if path.suffix == ".toml":
        return tuple(_of_lock(path, _toml(path)))
    return tuple(_of_lines(path))


def _of_lines(path: Path) -> Iterator[Demand]:
    text = re.sub(r"\\\r?\n", lambda _: "\\\t", path.read_text(encoding="utf-8"))
    number = 1
    for line in text.splitlines():
        shown, number = number, number + 1 + line.count("\\\t")
        words = COMMENT.sub("", line.replace("\\\t", " ")).strip()
        if not words or words.startswith(HARMLESS):
            continue
        if words.startswith("-"):
            msg = f"{path.name}:{shown}: wanted a requirement, found {words.split()[0]!r}"
            hint = (
                "write what that file asks for here; indexes are the machine's own settings, and "
                "`uv export --no-emit-project` leaves the project itself out"
            )
            raise ProjectError(msg, hint=hint)
        hashes = [value.partition(":") for value in HASH.findall(words)]
        yield _demand(
            f"{path.name}:{shown}",
            HASH.sub("", words).strip(),
            tuple(sorted(value for kind, _, value in hashes if kind == "sha256")),
        )


def _demand(where: str, text: str, sha256: tuple[str, ...]) -> Demand:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        msg = f"{where}: wanted a requirement (PEP 508), found {text!r}"
        raise ProjectError(msg, hint="write it as NAME>=VERSION") from error
    return Demand(text=text, sha256=sha256)


def _of_lock(path: Path, table: Mapping[str, object]) -> Iterator[Demand]:
    packages = table.get("packages")
    if "lock-version" not in table or not isinstance(packages, list):
        msg = f"{path.name}: wanted a pylock.toml (PEP 751) with packages, found none"
        raise ProjectError(msg, hint="make one with: uv export --format=pylock.toml")
    for item in packages:
        entry = item if isinstance(item, dict) else {}
        name, version = entry.get("name"), entry.get("version")
        if not isinstance(version, str):
            msg = f"{path.name}: {name}: wanted a version, found a folder or repository"
            raise ProjectError(msg, hint="list it under extensions, or leave it out of the lock")
        marker = f"; {entry['marker']}" if isinstance(entry.get("marker"), str) else ""
        yield _demand(path.name, f"{name}=={version}{marker}", tuple(sorted(_hashes(entry))))


def _hashes(entry: Mapping[str, object]) -> Iterator[str]:
    wheels = entry.get("wheels")
    for wheel in wheels if isinstance(wheels, list) else []:
        hashes = wheel.get("hashes") if isinstance(wheel, dict) else None
        sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
        if isinstance(sha256, str):
            yield sha256


def to_build(folder: Path) -> tuple[str, ...]:
    """What a project has to have installed to be built."""
    found = _section(folder, "build-system").get("requires")
    return _texts(folder, found) if isinstance(found, list) else SETUPTOOLS


def to_run(folder: Path) -> tuple[str, ...]:
    """What a project says that it needs when it runs; nothing where only its build knows it."""
    return _texts(folder, _section(folder, "project").get("dependencies"))


def _section(folder: Path, name: str) -> Mapping[str, object]:
    path = folder / "pyproject.toml"
    found = _toml(path).get(name) if path.is_file() else None
    return found if isinstance(found, dict) else {}


def _texts(folder: Path, value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    where = f"{folder.name}/pyproject.toml"
    return tuple(_demand(where, str(item), ()).text for item in items)


def _toml(path: Path) -> Mapping[str, object]:
    try:
        found: Mapping[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        msg = f"{path.name}: wanted TOML, found {error}"
        raise ProjectError(msg, hint="mend the file") from error
    return found
