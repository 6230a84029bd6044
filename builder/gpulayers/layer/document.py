"""One layer.toml read strictly: a definition, and every problem of the file at once."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gpulayers.errors import Problem
from gpulayers.layer.model import (
    KINDS,
    PLACEHOLDERS,
    TEMPLATE,
    Identity,
    Kind,
    LayerDef,
    Pair,
    TextError,
    fill,
    nearest,
)
from gpulayers.matrix import rules
from gpulayers.matrix.shape import Rule
from gpulayers.refs import Platform

FILE = "layer.toml"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
KEYS: Mapping[str, type] = {
    "schema": int,
    "kind": str,
    "description": str,
    "needs": list,
    "requirements": list,
    "cuda-components": list,
    "stands-in-for": list,
    "fixes-cuda": bool,
    "pair": list,
    "platforms": dict,
    "os-packages": list,
    "entrypoint": list,
    "secrets": list,
    "packages": dict,
    "identity": dict,
    "env": dict,
}
PAIR_KEYS = ("package", "version", "for", "source", "confidence")
REQUIRED = ("schema", "kind", "description", "needs")
TYPES = {int: "an integer", str: "a string", list: "an array", dict: "a table", bool: "a boolean"}
# Any values: what matters is that a requirement is one with them.
SAMPLE = dict(zip(PLACEHOLDERS, ("1.0", "12.8", "12", "cudart"), strict=True))
SYNTAX_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
Fits = Callable[[str], object]


@dataclass(slots=True)
class Reader:
    """One layer.toml being read: notes what is wrong and goes on; ``shown`` names it."""

    file: Path
    shown: str
    text: str = ""
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, key: str, *, wanted: str, found: str, hint: str = "", line: int = 0) -> None:
        """Note a problem with a key, at the line where it stands."""
        self.problems.append(
            Problem(
                file=self.shown,
                line=line or self._line(key),
                key=key,
                wanted=wanted,
                found=found,
                hint=hint,
            )
        )

    def _line(self, key: str) -> int:
        last = re.escape(key.rpartition(".")[2])
        pattern = re.compile(rf"""^\s*\[?\s*["']?{last}["']?\s*[\]=]""")
        lines = (n for n, line in enumerate(self.text.splitlines(), 1) if pattern.match(line))
        return next(lines, 0)

    def table(self) -> Mapping[str, object]:
        """The values that have the right type."""
        try:
            self.text = self.file.read_bytes().decode()
            table: Mapping[str, object] = tomllib.loads(self.text.replace("\r\n", "\n"))
        except UnicodeDecodeError as error:
            found = f"the byte 0x{error.object[error.start]:02x}"
            self.wrong("(encoding)", wanted="UTF-8", found=found, hint="save it as UTF-8")
            return {}
        except tomllib.TOMLDecodeError as error:
            place = SYNTAX_LINE.search(str(error))
            line = int(place[1]) if place else self.text.rstrip().count("\n") + 1
            self.wrong("(syntax)", wanted="TOML", found=str(error), line=line)
            return {}
        for key in sorted(table.keys() - KEYS.keys()):
            self.wrong(key, wanted="a known key", found=repr(key), hint=nearest(key, KEYS))
        for key in REQUIRED:
            if key not in table:
                self.wrong(key, wanted=TYPES[KEYS[key]], found="nothing")
        return {key: value for key, value in table.items() if self._has_type(key, value)}

    def _has_type(self, key: str, value: object) -> bool:
        kind = KEYS.get(key)
        if kind is None or type(value) is kind:
            return kind is not None
        found = TYPES.get(type(value), type(value).__name__)
        self.wrong(key, wanted=TYPES[kind], found=found)
        return False

    def strings(
        self, key: str, value: object, *, wanted: str = "", fits: Fits = bool
    ) -> tuple[str, ...]:
        """The strings of an array; each must fit (be not empty, where nothing else is said)."""
        items = value if isinstance(value, list) else []
        if value is not None and not isinstance(value, list):
            self.wrong(key, wanted="an array", found=repr(value))
        for item in items:
            if not isinstance(item, str) or not fits(item):
                what = wanted or "a string that is not empty"
                self.wrong(key, wanted=f"an array of strings, each {what}", found=repr(item))
        return tuple(item for item in items if isinstance(item, str) and item)

    def string_table(self, key: str, value: object) -> Mapping[str, str]:
        """The strings of a table by name."""
        items = value.items() if isinstance(value, dict) else ()
        for name, text in items:
            if not isinstance(text, str):
                self.wrong(f"{key}.{name}", wanted="a string", found=repr(text))
        return {str(name): text for name, text in items if isinstance(text, str)}

    def check_text(self, key: str, text: str) -> bool:
        """Whether the values of a cell fit into the braces of a text; tells where they do not."""
        try:
            fill(text, SAMPLE)
        except TextError as error:
            wanted = f"{{{'}, {'.join(PLACEHOLDERS)}}} in braces"
            self.wrong(key, wanted=wanted, found=repr(text), hint=error.hint)
            return False
        return True


def read(file: Path, *, shown: str) -> tuple[LayerDef | None, tuple[Problem, ...]]:
    """The layer of a file, or None where not even its kind is clear, and every problem.

    Shape: ``shown`` is what problems call the file.
    """
    reader = Reader(file=file, shown=shown)
    table = reader.table()
    name = file.parent.name
    if NAME.fullmatch(name) is None:
        wanted = "a name of lower-case words with dashes"
        reader.wrong("(folder)", wanted=wanted, found=repr(name))
    if table.get("schema", 1) != 1:
        reader.wrong("schema", wanted="1", found=str(table["schema"]))
    if not (file.parent / TEMPLATE).is_file():
        reader.wrong("(folder)", wanted=f"a file {TEMPLATE} beside {FILE}", found="none")
    kind = _kind(reader, table.get("kind"))
    layer = None if kind is None else _layer(reader, table, name=name, kind=kind)
    return layer, tuple(sorted(reader.problems, key=lambda problem: problem.line))


def _kind(reader: Reader, value: object) -> Kind | None:
    for kind in KINDS:
        if value == kind:
            return kind
    if isinstance(value, str):
        wanted = f"one of {', '.join(KINDS)}"
        reader.wrong("kind", wanted=wanted, found=repr(value), hint=nearest(value, KINDS))
    return None


def _layer(reader: Reader, table: Mapping[str, object], *, name: str, kind: Kind) -> LayerDef:
    def names(key: str, rule: Rule[str]) -> tuple[str, ...]:
        return reader.strings(key, table.get(key), wanted=rule.wanted, fits=rule.parse)

    return LayerDef(
        name=name,
        kind=kind,
        description=str(table.get("description", "")),
        folder=reader.file.parent,
        needs=reader.strings("needs", table.get("needs")),
        requirements=_requirements(reader, table.get("requirements")),
        cuda_components=names("cuda-components", rules.COMPONENT),
        stands_in_for=names("stands-in-for", rules.REQUIREMENT),
        fixes_cuda=table.get("fixes-cuda") is True,
        platforms=_platforms(reader, table.get("platforms")),
        pairs=_pairs(reader, table.get("pair")),
        os_packages=names("os-packages", rules.OS_PACKAGE),
        entrypoint=reader.strings("entrypoint", table.get("entrypoint")),
        secrets=names("secrets", rules.SECRET),
        packages=_packages(reader, table.get("packages")),
        identity=_identity(reader, table.get("identity"), kind),
        env=_env(reader, table.get("env")),
        smoke=tuple(sorted((reader.file.parent / "smoke").glob("*.py"))),
    )


def _requirements(reader: Reader, value: object) -> tuple[str, ...]:
    found = reader.strings("requirements", value)
    for text in found:
        if reader.check_text("requirements", text):
            rule = rules.REQUIREMENT
            if rule.parse(fill(text, SAMPLE)) is None:
                reader.wrong("requirements", wanted=rule.wanted, found=repr(text))
    return found


def _platforms(reader: Reader, value: object) -> Mapping[Platform, SpecifierSet] | None:
    if value is None:
        return None
    found: dict[Platform, SpecifierSet] = {}
    for name, text in reader.string_table("platforms", value).items():
        platform = rules.PLATFORM.parse(name)
        if platform is None:
            reader.wrong(f"platforms.{name}", wanted=rules.PLATFORM.wanted, found=repr(name))
        else:
            found[platform] = _versions(reader, f"platforms.{name}", text)
    return found


def _versions(reader: Reader, key: str, text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        wanted = 'versions (PEP 440), as ">=2.11" or "==2.8.0"'
        reader.wrong(key, wanted=wanted, found=repr(text))
        return SpecifierSet()


def _pairs(reader: Reader, value: object) -> tuple[Pair, ...]:
    found: list[Pair] = []
    for item in value if isinstance(value, list) else []:
        row = reader.string_table("pair", item)
        strange = sorted(row.keys() - set(PAIR_KEYS))
        missing = [key for key in PAIR_KEYS if not row.get(key)]
        if strange or missing or not isinstance(item, dict):
            wanted = f"tables with {', '.join(PAIR_KEYS)}"
            reader.wrong("pair", wanted=wanted, found=repr(item), hint="each of them is text")
            continue
        found.append(
            Pair(
                package=row["package"],
                version=row["version"],
                versions=_versions(reader, "pair.for", row["for"]),
                source=row["source"],
                confidence=row["confidence"],
            )
        )
    return tuple(found)


def _packages(reader: Reader, value: object) -> Mapping[str, tuple[str, ...]]:
    rule = rules.OS_PACKAGE
    return {
        distribution: reader.strings(
            f"packages.{distribution}", names, wanted=rule.wanted, fits=rule.parse
        )
        for distribution, names in (value if isinstance(value, dict) else {}).items()
    }


def _identity(reader: Reader, value: object, kind: Kind) -> Identity | None:
    if value is None:
        if kind == "framework":
            wanted = "a table with distribution and module"
            reader.wrong("identity", wanted=wanted, found="nothing")
        return None
    table = reader.string_table("identity", value)
    known = ("distribution", "module")
    for key in sorted(table.keys() - set(known)):
        hint = nearest(key, known)
        reader.wrong(f"identity.{key}", wanted="a known key", found=repr(key), hint=hint)
    written = value if isinstance(value, dict) else {}
    for key in known:
        if not written.get(key):
            reader.wrong(f"identity.{key}", wanted="a string that is not empty", found="nothing")
        reader.check_text(f"identity.{key}", table.get(key, ""))
    return Identity(distribution=table.get("distribution", ""), module=table.get("module", ""))


def _env(reader: Reader, value: object) -> Mapping[str, str]:
    table = reader.string_table("env", value)
    for name, text in table.items():
        if fault := rules.env_fault(name, text):
            wanted = "a variable that everyone who pulls the image may read"
            reader.wrong(f"env.{name}", wanted=wanted, found=fault)
    return table
