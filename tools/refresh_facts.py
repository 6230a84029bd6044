"""Compares what the facts say of wheels with what the package index serves today.

``python tools/refresh_facts.py [PACKAGE[==VERSION] …]`` asks the index, as uv is configured, for
the names of the wheels of every release that PyPI serves and whose Pythons or glibc nobody noted
(``--all``: of every one), and prints a diff of rows. ``--write`` puts it into the TOML files, with
today as the day of reading and the source added; then run ``tools/pack_facts.py``. ``--new`` names
releases that the index has and the facts do not. Nothing else of a row is touched: SASS and PTX are
read out of wheels by ``tools/read_sass.py``.
"""

import argparse
import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

DATA = Path(__file__).parents[1] / "builder" / "gpulayers" / "facts" / "data"
MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
# From the oldest on: uv leaves out wheels for Pythons older than the one that it resolves for.
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
OLD_NAMES = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
MANYLINUX = re.compile(r"manylinux_(?P<major>\d+)_(?P<minor>\d+)_(?P<machine>\w+)")
NAMED = re.compile(r"(?P<name>manylinux(1|2010|2014))_(?P<machine>\w+)")
CPYTHON = re.compile(r"cp3(?P<minor>\d+)(?P<free>t?)")
MANY = "many"
Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the names of wheels say for one platform.

    Shape: ``pythons`` are empty where one wheel is for many: its metadata says which; ``glibc`` is
    the oldest that serves every one of them.
    """

    pythons: tuple[str, ...]
    glibc: str


def distributions(row: Row) -> tuple[str, ...]:
    """The packages whose wheels decide for which Pythons a row's build is there."""
    package, major = str(row["package"]), row.get("cuda_major")
    if package == "cupy":
        return (f"cupy-cuda{major}x",)
    if package == "jax":
        plugin = (f"jax-cuda{major}-plugin",) if major in {12, 13} else ()
        return ("jaxlib", *plugin)
    return (package,)


def files_of(distribution: str, version: str) -> tuple[str, ...]:
    """The names of all wheels of a release; empty where the index has none, or no such release."""
    for python in PYTHONS:
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder, "requirements.in")
            asked.write_text(f"{distribution}=={version}\n", encoding="utf-8")
            argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-progress"]
            argv += ["--no-deps", "--universal", "--only-binary=:all:", "--format=pylock.toml"]
            argv += [f"--python-version={python}", "--no-python-downloads", str(asked)]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return tuple(_names(tomllib.loads(done.stdout)))
        if "dns error" in done.stderr or "Failed to fetch" in done.stderr:
            sys.exit(f"the package index does not answer: {done.stderr.strip()[-300:]}")
    return ()


def _names(answer: Mapping[str, object]) -> Iterator[str]:
    packages = answer.get("packages")
    for package in packages if isinstance(packages, list) else []:
        for wheel in package.get("wheels", []):
            yield unquote(urlsplit(wheel.get("name") or wheel["url"]).path.rpartition("/")[2])


def seen(files: Sequence[str], platform: str) -> Seen | None:
    """What wheels say for a platform; None where there are none."""
    found: dict[str, tuple[int, int]] = {}
    for file in files:
        try:
            tags = parse_wheel_filename(file)[3]
        except InvalidWheelFilename:
            continue
        for tag in tags:
            glibc = _glibc(tag, MACHINES[platform])
            python = _python(tag)
            if glibc is not None:
                found[python] = min(found.get(python, glibc), glibc)
    if not found:
        return None
    worst = max(found.values())
    names = [] if MANY in found else sorted(found, key=lambda p: (Version(p.rstrip("t")), p))
    return Seen(pythons=tuple(names), glibc=f"{worst[0]}.{worst[1]}")


def _glibc(tag: Tag, machine: str) -> tuple[int, int] | None:
    if (match := MANYLINUX.fullmatch(tag.platform)) and match["machine"] == machine:
        return int(match["major"]), int(match["minor"])
    if (match := NAMED.fullmatch(tag.platform)) and match["machine"] == machine:
        return OLD_NAMES[match["name"]]
    return None


def _python(tag: Tag) -> str:
    match = CPYTHON.fullmatch(tag.interpreter)
    if match is None or tag.abi == "abi3" or not tag.abi.startswith("cp"):
        return MANY
    return f"3.{match['minor']}{'t' if tag.abi.endswith('t') else ''}"


def together(parts: Sequence[Seen | None]) -> Seen | None:
    """What all of several packages have."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    pythons = [p for p in known[0].pythons if all(p in part.pythons for part in known)]
    glibc = max((part.glibc for part in known), key=Version)
    return Seen(pythons=tuple(pythons), glibc=glibc)


def differences(row: Row, found: Seen) -> dict[str, tuple[object, object]]:
    """Column to what it was and what it would be."""
    now: dict[str, object] = {"glibc": found.glibc}
    if found.pythons:
        now["pythons"] = list(found.pythons)
    return {name: (row[name], value) for name, value in now.items() if row[name] != value}


def changed(text: str, row: Row, new: Mapping[str, object], *, day: str, source: str) -> str:
    """The file's text with one row's columns replaced, and its source and day."""
    start = text.index(f'\nid = "{row["id"]}"\n') + 1
    end = text.find("\n[[", start)
    block = text[start : end if end >= 0 else len(text)]
    values = {**new, "read": day}
    if source not in str(row["source"]):
        values["source"] = f"{row['source']} ; {source}"
    for name, value in values.items():
        lines = block.splitlines(keepends=True)
        at = [index for index, line in enumerate(lines) if line.startswith(f"{name} = ")]
        if len(at) != 1:
            msg = f"{row['id']}: wanted one line of {name}, found {len(at)}"
            raise ValueError(msg)
        lines[at[0]] = f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
        block = "".join(lines)
    return text[:start] + block + (text[end:] if end >= 0 else "")


def wanted(row: Row, names: Sequence[str], *, every: bool) -> bool:
    """Whether a row is to be asked for."""
    if row["index"] != "pypi" or row["package"] == "tensorrt":
        return False  # what TensorRT's package serves only names others
    named = {str(row["package"]), f"{row['package']}=={row['version']}"}
    if names and not named & set(names):
        return False
    return every or not row["pythons"] or row["glibc"] == "unknown"


def newer(package: str, known: Sequence[str]) -> list[str]:
    """Releases of the index that are newer than all that are known, oldest first."""
    argv = [sys.executable, "-m", "pip", "index", "versions", package]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    match = re.search(r"Available versions: (.*)", done.stdout)
    newest = max(map(Version, known))
    found = [text.strip() for text in match[1].split(",")] if match is not None else []
    return sorted((v for v in found if _is_newer(v, newest)), key=Version)


def _is_newer(text: str, than: Version) -> bool:
    try:
        version = Version(text)
    except InvalidVersion:
        return False
    return version > than and not version.is_prerelease


def main() -> int:
    """Ask, print, and write where told."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", help="PACKAGE or PACKAGE==VERSION; default: all")
    parser.add_argument("--all", action="store_true", help="rows whose columns are known, too")
    parser.add_argument("--new", action="store_true", help="name releases that no row is about")
    parser.add_argument("--write", action="store_true", help="write the difference")
    options = parser.parse_args()
    rows: dict[Path, list[Row]] = {
        path: tomllib.loads(path.read_text("utf-8")).get("build", [])
        for path in sorted(DATA.glob("*.toml"))
    }
    asked = [
        (path, row)
        for path, some in rows.items()
        for row in some
        if wanted(row, options.packages, every=options.all)
    ]
    pairs = sorted({(d, str(row["version"])) for _, row in asked for d in distributions(row)})
    with ThreadPoolExecutor(4) as pool:
        files = dict(zip(pairs, pool.map(lambda pair: files_of(*pair), pairs), strict=True))
    day = dt.datetime.now(dt.UTC).date().isoformat()
    count = 0
    for path, row in asked:
        parts = [files[name, str(row["version"])] for name in distributions(row)]
        found = together([seen(part, str(row["platform"])) for part in parts])
        new = differences(row, found) if found is not None else {}
        if not new:
            continue
        count += 1
        print(row["id"])
        for name, (old, value) in new.items():
            print(f"  - {name} = {json.dumps(old)}\n  + {name} = {json.dumps(value)}")
        if options.write:
            values = {name: value for name, (_, value) in new.items()}
            source = f"names of its wheels on PyPI ({day})"
            text = changed(path.read_text("utf-8"), row, values, day=day, source=source)
            path.write_text(text, "utf-8")
    print(f"{len(asked)} rows asked for, {count} differ{', written' if options.write else ''}")
    for package in sorted({str(row["package"]) for _, row in asked}) if options.new else ():
        known = [str(row["version"]) for some in rows.values() for row in some]
        mine = [
            str(r["version"]) for some in rows.values() for r in some if r["package"] == package
        ]
        print(
            f"{package}: newer than the facts: {', '.join(newer(package, mine or known)) or 'none'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
