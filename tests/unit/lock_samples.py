"""Locks for tests: made up whole from what a project wants, the same at each call."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpulayers.layer import Library, read_library
from gpulayers.lock import wanted
from gpulayers.lock.model import (
    Closure,
    Lock,
    LockedBase,
    LockedModel,
    LockedPython,
    Package,
    PackageSet,
    Wheel,
)
from gpulayers.lock.wanted import ClosureWanted, Wanted
from gpulayers.matrix.load import read
from gpulayers.matrix.model import Cell, FolderModel, Matrix
from gpulayers.matrix.select import choose
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground, Image
from gpulayers.refs import Platform

REPOSITORY = Path(__file__).parents[2]
DEMO = REPOSITORY / "examples" / "demo"
AMD64 = Platform("linux", "amd64")
MB = 10**6
# What a package brings along, and how much a big one weighs.
NEEDS = {"onnxruntime-gpu": ("numpy", "nvidia-cudnn-cu12"), "cupy-cuda12x": ("numpy",)}
SIZES = {
    "nvidia-cublas-cu12": 400 * MB,
    "nvidia-cufft-cu12": 200 * MB,
    "nvidia-cudnn-cu12": 700 * MB,
    "onnxruntime-gpu": 300 * MB,
    "cupy-cuda12x": 110 * MB,
}
VERSIONS = {"numpy": "2.1.0", "nvidia-cudnn-cu12": "9.10.0"}


def hash_of(text: str) -> str:
    """64 hex digits that look real."""
    return hashlib.sha256(text.encode()).hexdigest()


def wheel(name: str, version: str, *, size_bytes: int | None = None) -> Wheel:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    size = SIZES.get(name, 50_000) if size_bytes is None else size_bytes
    return Wheel(
        file=file,
        name=name,
        version=version,
        sha256=hash_of(file),
        size_bytes=size,
        index="default",
    )


def package(name: str, version: str = "1.0-1") -> Package:
    return Package(name=name, version=version, sha256=hash_of(f"{name} {version}"))


def wheels_for(requirements: Sequence[str]) -> list[Wheel]:
    """Made up, but with the names and the sharing of real ones."""
    found: list[Wheel] = []
    for text in requirements:
        name, _, version = text.partition("==")
        name, _, extras = name.partition("[")
        version = version.removesuffix(".*") or "1.0"
        if name == "cuda-toolkit":
            parts = [f"nvidia-{part}-cu12" for part in extras.rstrip("]").split(",") if part]
            found += [wheel(part, f"{version}.7") for part in parts]
        found.append(wheel(name, version))
        found += [wheel(need, VERSIONS[need]) for need in NEEDS.get(name, ())]
    return found


def closure(one: ClosureWanted) -> tuple[Closure, list[Wheel]]:
    wheels = wheels_for(one.requirements)
    made = Closure(
        python=one.python,
        platform=one.platform,
        of=one.of,
        under=one.under,
        files=tuple(sorted(w.file for w in wheels)),
    )
    return made, wheels


def lock_for(ask: Wanted, matrix: Matrix) -> Lock:
    """A lock that fits; bases are ours (made), packages have one dependency."""
    made = [closure(one) for one in ask.closures]
    return Lock(
        inputs=wanted.digest(ask),
        uv=wheel("uv", "0.9.0"),
        bases=tuple(
            LockedBase(
                os=os,
                platform=platform,
                source=sources[-1],
                repository="",
                digest=f"sha256:{hash_of(f'{os} {platform.format()}')}",
                suite=sources[-1].rpartition(":")[2],
            )
            for os, _, sources in ask.bases
            for platform in ask.platforms
        ),
        packages=tuple(
            PackageSet(
                layer=layer,
                os=os,
                platform=platform,
                packages=tuple(sorted(package(name, f"1.0-{os or layer}") for name in names)),
            )
            for layer, os, names in [
                *(("base", os, names) for os, names in ask.os_packages),
                *ask.app_packages,
                *((layer, "", names) for layer, names in ask.layer_packages),
            ]
            for platform in ask.platforms
        ),
        pythons=tuple(_python(python, sources) for python, sources in ask.pythons),
        wheels={one.file: one for _, wheels in made for one in wheels},
        closures=tuple(sorted(one for one, _ in made)),
        models=tuple(_model(matrix, name) for name in ask.models),
    )


def _python(python: str, sources: tuple[str, ...]) -> LockedPython:
    source = sources[0].partition(":")[0]
    return LockedPython(python=python, source=source, version=python)


def _model(matrix: Matrix, name: str) -> LockedModel:
    model = matrix.models[name]
    assert isinstance(model, FolderModel)
    digest, size = wanted.model_digest(model)
    return LockedModel(name=name, digest=digest, size_bytes=size)


def read_matrix(file: Path) -> Matrix:
    matrix, problems = read(file)
    assert matrix is not None, "\n".join(problem.format() for problem in problems)
    return matrix


def packaged_library() -> Library:
    library, problems = read_library([REPOSITORY / "layers"], root=REPOSITORY)
    assert [problem.format() for problem in problems] == []
    return library


def cells_of(matrix: Matrix) -> tuple[Cell, ...]:
    return tuple(choose(matrix).kept)


def with_wheel(lock: Lock, name: str, sha256: str) -> Lock:
    """The lock with another hash for each wheel of that name."""
    wheels = {
        file: replace(one, sha256=sha256) if one.name == name else one
        for file, one in lock.wheels.items()
    }
    return replace(lock, wheels=wheels)


def with_base(lock: Lock, os: str, digest: str) -> Lock:
    """The lock with another digest for the base of an OS."""
    bases = tuple(replace(one, digest=digest) if one.os == os else one for one in lock.bases)
    return replace(lock, bases=bases)


def first() -> Image:
    """The first image of the demo, with a made-up lock."""
    matrix, library = read_matrix(DEMO / "matrix.toml"), packaged_library()
    cells = cells_of(matrix)
    lock = lock_for(wanted.gather(matrix, library, cells), matrix)
    ground = Ground(matrix=matrix, library=library, lock=lock, root="127.0.0.1:5000/acme")
    return make(ground, cells[:1]).images[0]
