"""The lock as a file: one entry a block, sorted, written whole or not at all."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomlkit

from gpulayers import documents
from gpulayers.errors import ProjectError
from gpulayers.lock.model import (
    Closure,
    Lock,
    LockedBase,
    LockedFile,
    LockedModel,
    LockedPython,
    Package,
    PackageSet,
    Wheel,
)
from gpulayers.lock.weights.names import checked_name
from gpulayers.refs import Platform, RefError

Table = Mapping[str, object]
_HEX = re.compile(r"[0-9a-f]{64}")
TABLES = frozenset(
    {"schema", "inputs", "tools", "base", "python", "packages", "closure", "model", "wheel"}
)
SCHEMA = 1
FILE = Path("matrix.lock.toml")
REMEDY = "make it anew: gpulayers lock"
BANNER = "Made by `gpulayers lock` from matrix.toml and layers/. Do not edit."


def write(path: Path, lock: Lock) -> None:
    """Write the lock whole or not at all."""
    documents.write(path, format_lock(lock))


def format_lock(lock: Lock) -> str:
    """The text of a lock: the same lock, the same bytes."""
    document = tomlkit.document()
    document.add(tomlkit.comment(BANNER))
    document.add("schema", tomlkit.item(SCHEMA))
    document.add("inputs", tomlkit.item(lock.inputs))
    document.add("tools", tomlkit.item({"uv": _wheel_line(lock.uv)}))
    _blocks(document, "base", (_base_block(base) for base in lock.bases))
    _blocks(document, "python", (_python_block(python) for python in lock.pythons))
    _blocks(document, "packages", (_package_block(entry) for entry in lock.packages))
    _blocks(document, "closure", (_closure_block(closure) for closure in lock.closures))
    _blocks(document, "model", (_model_block(model) for model in lock.models))
    _blocks(document, "wheel", (_wheel_block(wheel) for _, wheel in sorted(lock.wheels.items())))
    return tomlkit.dumps(document)


def _blocks(
    document: tomlkit.TOMLDocument, name: str, blocks: Iterable[Mapping[str, object]]
) -> None:
    array = tomlkit.aot()
    for block in blocks:
        table = tomlkit.table()
        for key, value in block.items():
            item = tomlkit.item(value)
            if isinstance(item, tomlkit.items.Array) and len(item) > 1:
                item.multiline(multiline=True)
            table.add(key, item)
        array.append(table)
    if len(array):
        document.add(name, array)


def _base_block(base: LockedBase) -> dict[str, object]:
    return {
        "os": base.os,
        "platform": base.platform.format(),
        "source": base.source,
        "repository": base.repository,
        "digest": base.digest,
        "suite": base.suite,
        **({"blanks": list(base.blanks)} if base.blanks else {}),
    }


def _python_block(python: LockedPython) -> dict[str, object]:
    return {"python": python.python, "source": python.source, "version": python.version}


def _package_block(entry: PackageSet) -> dict[str, object]:
    return {
        "layer": entry.layer,
        "os": entry.os,
        "platform": entry.platform.format(),
        "packages": [f"{p.name} {p.version} {p.sha256}" for p in entry.packages],
    }


def _closure_block(closure: Closure) -> dict[str, object]:
    return {
        "of": closure.of,
        "under": list(closure.under),
        "python": closure.python,
        "platform": closure.platform.format(),
        "files": list(closure.files),
    }


def _model_block(model: LockedModel) -> dict[str, object]:
    block: dict[str, object] = {
        "name": model.name,
        "digest": model.digest,
        "size": model.size_bytes,
    }
    if not model.source:
        return block
    files = [f"{file.sha256} {file.size_bytes} {file.name}" for file in model.files]
    return {**block, "source": model.source, "revision": model.revision, "files": files}


def _wheel_block(wheel: Wheel) -> dict[str, object]:
    return {
        "file": wheel.file,
        "name": wheel.name,
        "version": wheel.version,
        "sha256": wheel.sha256,
        "size": wheel.size_bytes,
        "index": wheel.index,
    }


def _wheel_line(wheel: Wheel) -> dict[str, object]:
    return _wheel_block(wheel)


def read(path: Path) -> Lock | None:
    """The lock in that file, or None when there is no file.

    Raises: ProjectError: the file is not a lock that we wrote.
    """
    if not path.is_file():
        return None
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except KeyError as error:
        msg = f"{path.name} is not a lock of this version: no key {error}"
        raise ProjectError(msg, hint="run: gpulayers lock") from error
    except (tomllib.TOMLDecodeError, RefError, TypeError, ValueError) as error:
        msg = f"{path.name} is not a lock of this version: {error}"
        raise ProjectError(msg, hint="run: gpulayers lock") from error


def parse(text: str, path: Path = FILE) -> Lock:
    """The lock in a text, the other way round of ``format_lock``.

    Raises: ProjectError: it is of another schema; KeyError, TypeError, ValueError, RefError: it is
        none; ``read`` says it in our words.
    """
    table: Table = tomllib.loads(text)
    documents.demand_schema(table["schema"], SCHEMA, path=path, remedy=REMEDY)
    if strange := sorted(table.keys() - TABLES):
        msg = f"a [[{strange[0]}]], which no lock has"
        raise ValueError(msg)
    wheels = {wheel.file: wheel for wheel in map(_wheel, _tables(table, "wheel"))}
    closures = tuple(_closure(entry) for entry in _tables(table, "closure"))
    for file in (file for closure in closures for file in closure.files):
        if file not in wheels:
            msg = f"no [[wheel]] {file!r}, which a [[closure]] names"
            raise ValueError(msg)
    return Lock(
        inputs=_text(table, "inputs"),
        uv=_wheel(_sub(_sub(table, "tools"), "uv")),
        bases=tuple(_base(entry) for entry in _tables(table, "base")),
        packages=tuple(_package_set(entry) for entry in _tables(table, "packages")),
        pythons=tuple(_python(entry) for entry in _tables(table, "python")),
        wheels=wheels,
        closures=closures,
        models=tuple(_model(entry) for entry in _tables(table, "model")),
    )


def _text(table: Table, key: str) -> str:
    value = table[key]
    if not isinstance(value, str):
        msg = f"{key}: wanted a string"
        raise TypeError(msg)
    return value


def _number(table: Table, key: str) -> int:
    value = table[key]
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{key}: wanted an integer"
        raise TypeError(msg)
    return value


def _sha256(table: Table, key: str, *, prefix: str = "") -> str:
    value = _text(table, key)
    if _HEX.fullmatch(value.removeprefix(prefix)) is None or not value.startswith(prefix):
        msg = f"{key}: wanted {prefix}64 hex digits, found {value!r}"
        raise ValueError(msg)
    return value


def _strings(table: Table, key: str) -> tuple[str, ...]:
    value = table[key]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        msg = f"{key}: wanted an array of strings"
        raise TypeError(msg)
    return tuple(value)


def _sub(table: Table, key: str) -> Table:
    value = table[key]
    if not isinstance(value, dict):
        msg = f"{key}: wanted a table"
        raise TypeError(msg)
    return value


def _tables(table: Table, key: str) -> list[Table]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        msg = f"{key}: wanted tables"
        raise TypeError(msg)
    return value


def _base(entry: Table) -> LockedBase:
    return LockedBase(
        os=_text(entry, "os"),
        platform=Platform.parse(_text(entry, "platform")),
        source=_text(entry, "source"),
        repository=_text(entry, "repository"),
        digest=_sha256(entry, "digest", prefix="sha256:"),
        suite=_text(entry, "suite"),
        blanks=_strings(entry, "blanks") if "blanks" in entry else (),
    )


def _python(entry: Table) -> LockedPython:
    return LockedPython(
        python=_text(entry, "python"),
        source=_text(entry, "source"),
        version=_text(entry, "version"),
    )


def _package_set(entry: Table) -> PackageSet:
    packages = []
    for line in _strings(entry, "packages"):
        name, version, sha256 = line.split(" ")
        sha256 = _sha256({line: sha256}, line)
        packages.append(Package(name=name, version=version, sha256=sha256))
    return PackageSet(
        layer=_text(entry, "layer"),
        os=_text(entry, "os"),
        platform=Platform.parse(_text(entry, "platform")),
        packages=tuple(packages),
    )


def _closure(entry: Table) -> Closure:
    return Closure(
        python=_text(entry, "python"),
        platform=Platform.parse(_text(entry, "platform")),
        of=_text(entry, "of"),
        under=_strings(entry, "under"),
        files=_strings(entry, "files"),
    )


def _model(entry: Table) -> LockedModel:
    return LockedModel(
        name=_text(entry, "name"),
        digest=_sha256(entry, "digest", prefix="sha256:"),
        size_bytes=_number(entry, "size"),
        source=_text(entry, "source") if "source" in entry else "",
        revision=_text(entry, "revision") if "source" in entry else "",
        files=_files(entry) if "source" in entry else (),
    )


def _files(entry: Table) -> tuple[LockedFile, ...]:
    files = []
    for line in _strings(entry, "files"):
        sha256, size, name = line.split(" ", 2)
        sha256 = _sha256({line: sha256}, line)
        files.append(LockedFile(name=checked_name(name), sha256=sha256, size_bytes=int(size)))
    return tuple(files)


def _wheel(entry: Table) -> Wheel:
    return Wheel(
        file=_text(entry, "file"),
        name=_text(entry, "name"),
        version=_text(entry, "version"),
        sha256=_sha256(entry, "sha256"),
        size_bytes=_number(entry, "size"),
        index=_text(entry, "index"),
    )
