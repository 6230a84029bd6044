"""Layers as types: one definition, all of them by name, those of an image in their order."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Literal, get_args

from packaging.specifiers import SpecifierSet

from gpulayers.errors import ProjectError
from gpulayers.refs import Platform

Kind = Literal["tools", "base", "tool", "python", "cuda", "framework", "model", "devel", "app"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLACEHOLDERS = ("version", "cuda", "cuda_major", "components")
TEMPLATE = "Dockerfile.j2"


class TextError(ProjectError):
    """A text of a layer.toml has braces that no value of a cell belongs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How an image proves that it holds this framework: what is installed, what is imported."""

    distribution: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A package that belongs to certain versions of a framework: torchvision to torch.

    Shape: ``versions`` are the framework's; ``source`` and ``confidence`` say who says so.
    """

    package: str
    version: str
    versions: SpecifierSet
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerDef:
    """One layer of the library.

    Shape: ``needs`` are names of layers below it; texts of ``requirements`` and ``identity`` may
    hold ``{version}``, ``{cuda}``, ``{cuda_major}`` and ``{components}``; ``packages`` maps a
    distribution to package names; ``smoke`` files are sorted by name. ``fixes_cuda`` says that its
    wheels ask for exact parts of CUDA; ``platforms`` maps those with CUDA wheels to the versions
    that have them, and None means all.
    """

    name: str
    kind: Kind
    description: str
    folder: Path
    needs: tuple[str, ...]
    requirements: tuple[str, ...]
    cuda_components: tuple[str, ...]
    stands_in_for: tuple[str, ...]
    fixes_cuda: bool
    platforms: Mapping[Platform, SpecifierSet] | None
    pairs: tuple[Pair, ...]
    os_packages: tuple[str, ...]
    entrypoint: tuple[str, ...]
    secrets: tuple[str, ...]
    packages: Mapping[str, tuple[str, ...]]
    identity: Identity | None
    env: Mapping[str, str]
    smoke: tuple[Path, ...]

    @property
    def template(self) -> Path:
        """The Jinja2 text of the stages that make this layer's steps."""
        return self.folder / TEMPLATE

    def has_wheels(self, version: str, platform: Platform) -> bool:
        """Whether that version has CUDA wheels for a platform."""
        if self.platforms is None:
            return True
        found = self.platforms.get(platform)
        return found is not None and found.contains(version, prereleases=True)

    def paired(self, version: str) -> tuple[str, ...]:
        """The requirements that go with a version of the framework: the last fitting pair wins."""
        fitting = {
            pair.package: f"{pair.package}=={pair.version}"
            for pair in self.pairs
            if pair.versions.contains(version, prereleases=True)
        }
        return tuple(requirement for _, requirement in sorted(fitting.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All layers by name; ``folders`` is where templates are looked for, the project's first."""

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


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in their braces.

    Raises: TextError: other names in braces, or braces that do not pair.
    """
    try:
        names = [name for _, name, spec, how in Formatter().parse(text) if name is not None]
        strange = [name for name in names if name not in PLACEHOLDERS]
        if not strange:
            return text.format_map(values)
    except (ValueError, KeyError, AttributeError, IndexError) as error:
        msg = f"{text!r}: wanted {{{'}, {'.join(PLACEHOLDERS)}}}, found braces without sense"
        raise TextError(msg) from error
    msg = f"{text!r}: wanted {{{'}, {'.join(PLACEHOLDERS)}}}, found {{{strange[0]}}}"
    raise TextError(msg, hint=nearest(strange[0], PLACEHOLDERS))


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint for an unknown name."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def stack(library: Library, framework: str) -> tuple[LayerDef, ...]:
    """The layers of an image with that framework, lowest first, without base, tools and model.

    Raises: ProjectError: the framework is not in the library.
    """
    if framework not in library.layers:
        msg = f"no layer {framework!r} in the library"
        raise ProjectError(msg, hint=nearest(framework, library.frameworks()))
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for need in library.layers[name].needs:
            visit(need)
        order.append(name)

    visit(framework)
    return tuple(library.layers[name] for name in order)
