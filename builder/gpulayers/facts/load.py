"""The packaged facts, read strictly: every row with its id, source and confidence."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar, get_args

from gpulayers.facts import convert, model
from gpulayers.facts.model import Build, Confidence, Facts, Origin
from gpulayers.versions import Dotted, MajorMinor

Row = TypeVar("Row")
DATA = Path(__file__).parent / "data"
# The rows of all TOML files in one, made by tools/pack_facts.py: TOML is slow to read.
PACKED = DATA / "facts.json"
CORE = ("cuda", "cudnn", "drivers", "forward-compat", "gpus", "images", "os", "rules")
# What judging a framework needs beside its own file.
BESIDE = {"vllm": ("torch",), "xformers": ("torch",)}
PACKAGES = (
    *("cupy", "jax", "onnxruntime-gpu", "tensorflow", "tensorrt", "torch", "vllm", "xformers"),
)
TABLES: Mapping[str, type[object]] = {
    "branch": model.Branch,
    "build": model.Build,
    "cudnn": model.CudnnRange,
    "error": model.KnownError,
    "forward": model.ForwardCompat,
    "generation": model.Generation,
    "gpu": model.Gpu,
    "image": model.BaseImage,
    "jetpack": model.JetPack,
    "libc": model.Libc,
    "minor_floor": model.MinorFloor,
    "pairing": model.Pairing,
    "rule": model.Rule,
    "toolkit": model.Toolkit,
}
ORIGIN = ("id", "source", "read", "confidence", "note")
CONFIDENCES = frozenset(get_args(Confidence))


class FactsError(ValueError):
    """The packaged facts are damaged: a fault of ours, which no project can cause."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of all files by table, and what is wrong with any of them."""

    tables: Mapping[str, list[object]]
    problems: list[str]

    def of(self, table: str, kind: type[Row]) -> tuple[Row, ...]:
        return tuple(row for row in self.tables[table] if isinstance(row, kind))


def load(packages: Collection[str] = PACKAGES, *, path: Path = PACKED) -> Facts:
    """The facts; of frameworks, those of ``packages`` and of what they stand on.

    Shape: a package that nothing is known of has no builds. Read once a process.
    Raises: FactsError: with everything that is wrong in the files.
    """
    wanted = {name for each in packages for name in (each, *BESIDE.get(each, ()))}
    return _load(tuple(sorted(wanted & set(PACKAGES))), path)


@cache
def _load(packages: tuple[str, ...], path: Path) -> Facts:
    documents = _documents(path)
    return parse({name: documents.get(name) for name in (*CORE, *packages)})


@cache
def _documents(path: Path) -> Mapping[str, object]:
    match json.loads(path.read_bytes()):
        case dict() as documents:
            return documents
        case found:
            msg = f"{path.name}: wanted a table of files, found {type(found).__name__}"
            raise FactsError(msg)


@cache
def load_errors(path: Path = PACKED) -> tuple[model.KnownError, ...]:
    """The errors that users meet, in the order of their file; no other command reads them.

    Raises: FactsError: with everything that is wrong in the file.
    """
    rows = _rows({"errors": _documents(path).get("errors")})
    _demand(rows)
    return rows.of("error", model.KnownError)


def _demand(rows: _Rows) -> None:
    if rows.problems:
        count = len(rows.problems)
        msg = f"{count} problems in the facts:\n" + "\n".join(f"  {p}" for p in rows.problems)
        raise FactsError(msg)


def parse(documents: Mapping[str, object]) -> Facts:
    """Facts from the tables of files, by the files' names without the ending.

    Raises: FactsError: with everything that is wrong.
    """
    rows = _rows(documents)
    _demand(rows)
    builds: dict[str, list[Build]] = {}
    for build in rows.of("build", model.Build):
        builds.setdefault(build.package, []).append(build)
    return Facts(
        toolkits=rows.of("toolkit", model.Toolkit),
        minor_floors={row.major: row for row in rows.of("minor_floor", model.MinorFloor)},
        generations=rows.of("generation", model.Generation),
        branches={row.number: row for row in rows.of("branch", model.Branch)},
        jetpacks=rows.of("jetpack", model.JetPack),
        gpus=rows.of("gpu", model.Gpu),
        forward=rows.of("forward", model.ForwardCompat),
        cudnn=rows.of("cudnn", model.CudnnRange),
        libcs={row.os: row for row in rows.of("libc", model.Libc)},
        builds={name: tuple(found) for name, found in builds.items()},
        pairings=rows.of("pairing", model.Pairing),
        images=rows.of("image", model.BaseImage),
        rules={row.name: row for row in rows.of("rule", model.Rule)},
    )


def _rows(documents: Mapping[str, object]) -> _Rows:
    rows = _Rows({name: [] for name in TABLES}, [])
    ids: set[str] = set()
    for name, document in documents.items():
        if not isinstance(document, dict):
            rows.problems.append(f"{name}.toml: wanted tables of rows, found {document!r}")
            continue
        for table, found in document.items():
            if table not in TABLES or not isinstance(found, list):
                rows.problems.append(f"{name}.toml: unknown table {table}")
                continue
            _read(rows, name, table, found, ids)
    rows.problems.extend(_unsorted(rows.tables))
    return rows


def _read(rows: _Rows, name: str, table: str, found: Iterable[object], ids: set[str]) -> None:
    for index, row in enumerate(found):
        if not isinstance(row, dict):
            rows.problems.append(f"{name}.toml: {table}[{index}]: wanted a row, found {row!r}")
            continue
        try:
            rows.tables[table].append(_row(TABLES[table], row, name, ids))
        except convert.RowError as error:
            rows.problems.append(f"{name}.toml: {table}[{index}] {row.get('id', '')}: {error}")


def _row(kind: type[object], row: Mapping[str, object], file: str, ids: set[str]) -> object:
    texts = {key: row.get(key) for key in ORIGIN}
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    if wrong:
        msg = f"wanted texts, found none: {', '.join(wrong)}"
        raise convert.RowError(msg)
    name, confidence = str(texts["id"]), str(texts["confidence"])
    if not name.startswith(f"{file}/") or name in ids:
        msg = f"wanted an id {file}/TABLE/KEY that no other row has"
        raise convert.RowError(msg)
    ids.add(name)
    if not texts["source"] or not texts["read"] or confidence not in CONFIDENCES:
        msg = "wanted a source, the day it was read and a known confidence"
        raise convert.RowError(msg)
    origin = Origin(
        id=name,
        source=str(texts["source"]),
        read=str(texts["read"]),
        confidence=next(word for word in get_args(Confidence) if word == confidence),
        note=str(texts["note"]),
    )
    return convert.read(
        kind, {key: value for key, value in row.items() if key not in ORIGIN}, origin=origin
    )


def _unsorted(tables: Mapping[str, Iterable[object]]) -> list[str]:
    """Tables that code goes through from the oldest to the newest, and that are not so."""
    orders: Mapping[str, Sequence[Dotted | MajorMinor | int]] = {
        "toolkit": [r.version for r in tables["toolkit"] if isinstance(r, model.Toolkit)],
        "branch": [r.number for r in tables["branch"] if isinstance(r, model.Branch)],
        "forward": [r.cuda for r in tables["forward"] if isinstance(r, model.ForwardCompat)],
        "image": [r.version for r in tables["image"] if isinstance(r, model.BaseImage)],
    }
    return [
        f"{name}: wanted the oldest first, each once"
        for name, keys in orders.items()
        if list(keys) != sorted(set(keys))
    ]
