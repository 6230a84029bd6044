"""The folders of layers read together: which replaces which, and whether they fit together."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from gpulayers.errors import Problem
from gpulayers.layer.document import FILE, Reader, read
from gpulayers.layer.model import TEMPLATE, Kind, LayerDef, Library, nearest

# What a layer of a kind cannot be made without.
STANDS_ON: Mapping[Kind, tuple[Kind, ...]] = {
    "framework": ("python", "cuda"),
    "cuda": ("python",),
    "model": ("python",),
    "devel": ("python", "cuda"),
    "app": ("python",),
}
# Layers of these kinds stand in every image at a place of their own.
NEVER_NEEDED: tuple[Kind, ...] = ("base", "tools", "model", "devel", "app")


def read_library(folders: Sequence[Path], *, root: Path) -> tuple[Library, tuple[Problem, ...]]:
    """Read all layers of the folders; a later folder's layer replaces an earlier one's whole.

    Shape: problems name files relative to ``root`` where they lie below it; the library then holds
    what could be read.
    """
    layers: dict[str, LayerDef] = {}
    problems: list[Problem] = []
    names: set[str] = set()
    for each in (each for folder in folders for each in _subfolders(folder)):
        file = each / FILE
        if not file.is_file():
            problems.append(_no_file(each, root))
            continue
        names.add(each.name)
        layer, wrong = read(file, shown=_shown(file, root))
        problems += wrong
        layers.pop(each.name, None)
        if layer is not None:
            layers[layer.name] = layer
    problems += _check_needs(layers, names, root)
    return Library(layers=layers, folders=tuple(reversed(folders))), tuple(problems)


def _subfolders(folder: Path) -> Iterator[Path]:
    """Those that are meant as layers: with a layer.toml, or with a template that wants one."""
    for each in sorted(path for path in folder.iterdir() if path.is_dir()):
        if (each / FILE).is_file() or (each / TEMPLATE).is_file():
            yield each


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _no_file(folder: Path, root: Path) -> Problem:
    return Problem(
        file=_shown(folder / TEMPLATE, root),
        line=0,
        key="(folder)",
        wanted=f"a file {FILE} beside {TEMPLATE}",
        found="none",
        hint="a layer of ours is replaced whole: copy its other files too",
    )


def _check_needs(
    layers: Mapping[str, LayerDef], names: Collection[str], root: Path
) -> list[Problem]:
    problems: list[Problem] = []
    for layer in layers.values():
        file = layer.folder / FILE
        text = file.read_text(encoding="utf-8")
        reader = Reader(file=file, shown=_shown(file, root), text=text)
        _check_known(reader, layer, layers, names)
        cycle = _cycle(layer.name, layers)
        if cycle and layer.name == min(cycle):
            way = " -> ".join([*cycle, cycle[0]])
            reader.wrong("needs", wanted="no cycle", found=way, hint="drop one of them")
        elif all(need in layers for need in _below(layer.name, layers)):
            _check_ground(reader, layer, layers)
        problems += reader.problems
    return problems


def _check_known(
    reader: Reader, layer: LayerDef, layers: Mapping[str, LayerDef], names: Collection[str]
) -> None:
    for need in layer.needs:
        if need not in names:
            hint = nearest(need, names)
            reader.wrong("needs", wanted="a layer of the library", found=repr(need), hint=hint)
        elif need in layers and layers[need].kind in NEVER_NEEDED:
            found = f"{need!r}, a layer of kind {layers[need].kind}"
            hint = "it stands in every image at a place of its own"
            reader.wrong("needs", wanted="a layer that may be needed", found=found, hint=hint)


def _check_ground(reader: Reader, layer: LayerDef, layers: Mapping[str, LayerDef]) -> None:
    kinds = {layers[need].kind for need in _below(layer.name, layers)}
    for kind in STANDS_ON.get(layer.kind, ()):
        if kind not in kinds:
            wanted = f"a layer of kind {kind}, as a {layer.kind} stands on one"
            found = ", ".join(layer.needs) or "nothing"
            reader.wrong("needs", wanted=wanted, found=found)


def _below(start: str, layers: Mapping[str, LayerDef]) -> set[str]:
    """The names of all layers that one needs, through others too; also of unknown ones."""
    found: set[str] = set()
    waiting = [*layers[start].needs]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += layers[name].needs if name in layers else ()
    return found


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
