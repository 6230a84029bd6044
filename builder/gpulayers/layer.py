"""The layer library: what each folder of ``layers/`` defines."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from gpulayers.errors import Problem, ProjectError

Kind = Literal["tools", "base", "tool", "python", "cuda", "framework", "model"]
KINDS: tuple[str, ...] = get_args(Kind)
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
KEYS: Mapping[str, type] = {
    "schema": int,
    "kind": str,
    "description": str,
    "needs": list,
    "requirements": list,
    "cuda-components": list,
    "stands-in-for": list,
    "os-packages": list,
    "entrypoint": list,
    "packages": dict,
    "identity": dict,
    "env": dict,
}
REQUIRED = ("schema", "kind", "description", "needs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How an image proves that it holds this framework: the distribution's and the module's name."""

    distribution: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerDef:
    """One layer of the library.

    Shape: ``needs`` are names of layers below it; texts of ``requirements`` and ``identity`` may hold
    ``{version}``, ``{cuda}``, ``{cuda_major}`` and ``{components}``; ``packages`` maps a
    distribution to package names; ``smoke`` files are sorted by name.
    """

    name: str
    kind: Kind
    description: str
    folder: Path
    needs: tuple[str, ...]
    requirements: tuple[str, ...]
    cuda_components: tuple[str, ...]
    stands_in_for: tuple[str, ...]
    os_packages: tuple[str, ...]
    entrypoint: tuple[str, ...]
    packages: Mapping[str, tuple[str, ...]]
    identity: Identity | None
    env: Mapping[str, str]
    smoke: tuple[Path, ...]

    @property
    def template(self) -> Path:
        """The Jinja2 text of the stages that make this layer's steps."""
        return self.folder / "Dockerfile.j2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All layers by name; ``folders`` is where templates are looked for, the project's own first."""

    layers: Mapping[str, LayerDef]
    folders: tuple[Path, ...]

    def of_kind(self, kind: Kind) -> tuple[LayerDef, ...]:
        """The layers of one kind, sorted by name."""
        return tuple(layer for _, layer in sorted(self.layers.items()) if layer.kind == kind)

    def frameworks(self) -> Mapping[str, LayerDef]:
        """The framework layers by name."""
        return {layer.name: layer for layer in self.of_kind("framework")}

    def single(self, kind: Kind) -> LayerDef:
        """The one layer of a kind that images have one of.

        Raises: ProjectError: there is none, or more than one.
        """
        found = self.of_kind(kind)
        if len(found) != 1:
            names = ", ".join(layer.name for layer in found) or "none"
            msg = f"wanted one layer of kind {kind!r}, found {names}"
            raise ProjectError(msg, hint="a layer of the same name in layers/ replaces ours")
        return found[0]


@dataclass(slots=True)
class _Reader:
    """One layer.toml being read: notes what is wrong and goes on."""

    file: Path
    shown: str
    text: str
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, key: str, wanted: str, found: object, hint: str = "") -> None:
        pattern = re.compile(rf"^\s*\[?\s*{re.escape(key.rpartition('.')[2])}\s*[\]=]")
        lines = [n for n, line in enumerate(self.text.splitlines(), 1) if pattern.match(line)]
        self.problems.append(
            Problem(
                file=self.shown,
                line=lines[0] if lines else 0,
                key=key,
                wanted=wanted,
                found=str(found),
                hint=hint,
            )
        )

    def table(self) -> Mapping[str, object]:
        try:
            table: Mapping[str, object] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            self.wrong("(whole file)", "TOML", error)
            return {}
        for key in sorted(table.keys() - KEYS.keys()):
            self.wrong(key, "a known key", key, _nearest(key, KEYS))
        for key in REQUIRED:
            if key not in table:
                self.wrong(key, "a value", "nothing")
        return {key: value for key, value in table.items() if self._fits(key, value)}

    def _fits(self, key: str, value: object) -> bool:
        wanted = KEYS.get(key)
        if wanted is None or (isinstance(value, wanted) and not isinstance(value, bool)):
            return wanted is not None
        self.wrong(key, _type_name(wanted), _type_name(type(value)))
        return False

    def strings(self, key: str, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else []
        bad = [item for item in items if not isinstance(item, str) or not item]
        if bad:
            self.wrong(key, "a list of non-empty strings", repr(bad[0]))
        return tuple(item for item in items if isinstance(item, str))

    def string_table(self, key: str, value: object) -> Mapping[str, str]:
        items = value.items() if isinstance(value, dict) else ()
        for name, text in items:
            if not isinstance(text, str):
                self.wrong(f"{key}.{name}", "a string", repr(text))
        return {str(name): text for name, text in items if isinstance(text, str)}


def _type_name(kind: type) -> str:
    names = {int: "an integer", str: "a string", list: "an array", dict: "a table"}
    return names.get(kind, kind.__name__)


def _nearest(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"


def read_library(folders: Sequence[Path], *, root: Path) -> tuple[Library, tuple[Problem, ...]]:
    """Read all layers of the folders; a later folder's layer replaces an earlier one's whole.

    Shape: problems name files relative to ``root`` where they lie below it; the library then holds
    what could be read.
    """
    layers: dict[str, LayerDef] = {}
    problems: list[Problem] = []
    for file in _layer_files(folders):
        layer, wrong = _read_layer(file, root=root)
        problems += wrong
        if layer is not None:
            layers[layer.name] = layer
    problems += _check_needs(layers, root)
    return Library(layers=layers, folders=tuple(reversed(folders))), tuple(problems)


def _layer_files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.glob("*/layer.toml"))


def _read_layer(file: Path, *, root: Path) -> tuple[LayerDef | None, list[Problem]]:
    shown = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
    reader = _Reader(file=file, shown=shown, text=file.read_text(encoding="utf-8"))
    table = reader.table()
    name = file.parent.name
    if NAME.fullmatch(name) is None:
        reader.wrong("(folder)", "a name of lower-case words with dashes", name)
    if table.get("schema", 1) != 1:
        reader.wrong("schema", "1", table["schema"])
    kind = _kind(reader, table.get("kind"))
    if not (file.parent / "Dockerfile.j2").is_file():
        reader.wrong("(folder)", "a file Dockerfile.j2 beside layer.toml", "none")
    if kind is None:
        return None, reader.problems
    return _layer(reader, table, name=name, kind=kind), reader.problems


def _kind(reader: _Reader, value: object) -> Kind | None:
    for kind in get_args(Kind):
        if value == kind:
            known: Kind = kind
            return known
    if isinstance(value, str):
        reader.wrong("kind", f"one of {', '.join(KINDS)}", value, _nearest(value, KINDS))
    return None


def _layer(reader: _Reader, table: Mapping[str, object], *, name: str, kind: Kind) -> LayerDef:
    packages = table.get("packages")
    return LayerDef(
        name=name,
        kind=kind,
        description=str(table.get("description", "")),
        folder=reader.file.parent,
        needs=reader.strings("needs", table.get("needs")),
        requirements=reader.strings("requirements", table.get("requirements")),
        cuda_components=reader.strings("cuda-components", table.get("cuda-components")),
        stands_in_for=reader.strings("stands-in-for", table.get("stands-in-for")),
        os_packages=reader.strings("os-packages", table.get("os-packages")),
        entrypoint=reader.strings("entrypoint", table.get("entrypoint")),
        packages={
            distribution: reader.strings(f"packages.{distribution}", names)
            for distribution, names in (packages if isinstance(packages, dict) else {}).items()
        },
        identity=_identity(reader, table.get("identity"), kind),
        env=reader.string_table("env", table.get("env")),
        smoke=tuple(sorted((reader.file.parent / "smoke").glob("*.py"))),
    )


def _identity(reader: _Reader, value: object, kind: Kind) -> Identity | None:
    if value is None:
        if kind == "framework":
            reader.wrong("identity", "a table with distribution and module", "nothing")
        return None
    table = reader.string_table("identity", value)
    for key in sorted({"distribution", "module"} ^ table.keys()):
        reader.wrong(f"identity.{key}", "exactly distribution and module", key)
    return Identity(distribution=table.get("distribution", ""), module=table.get("module", ""))


def _check_needs(layers: Mapping[str, LayerDef], root: Path) -> list[Problem]:
    problems = []
    for layer in layers.values():
        file = layer.folder / "layer.toml"
        reader = _Reader(
            file=file,
            shown=str(file.relative_to(root)) if file.is_relative_to(root) else str(file),
            text=file.read_text(encoding="utf-8"),
        )
        for need in layer.needs:
            if need not in layers:
                reader.wrong("needs", "a layer of the library", need, _nearest(need, layers))
        cycle = _cycle(layer.name, layers)
        if cycle and layer.name == min(cycle):
            reader.wrong("needs", "no cycle", " -> ".join([*cycle, cycle[0]]), "drop one of them")
        problems += reader.problems
    return problems


def _cycle(start: str, layers: Mapping[str, LayerDef]) -> list[str]:
    """The names on a way from a layer back to itself, in order; empty when there is none."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for need in layers[way[-1]].needs:
            if need == start:
                return way
            if need in layers and need not in seen:
                seen.add(need)
                ways.append([*way, need])
    return []


def stack(library: Library, framework: str) -> tuple[LayerDef, ...]:
    """The layers of an image with that framework, lowest first, without base, tools and model.

    Raises: ProjectError: the framework is not in the library.
    """
    if framework not in library.layers:
        msg = f"no layer {framework!r} in the library"
        raise ProjectError(msg, hint=_nearest(framework, library.frameworks()))
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for need in library.layers[name].needs:
            visit(need)
        order.append(name)

    visit(framework)
    return tuple(library.layers[name] for name in order)
