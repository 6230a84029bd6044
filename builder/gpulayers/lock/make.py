"""Making a lock: asks registries, archives and the package index what there is, once."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gpulayers import bases
from gpulayers.bases import Workshop
from gpulayers.engine.buildx import Secret
from gpulayers.errors import ProjectError
from gpulayers.inputs import Inputs
from gpulayers.lock import packages, wanted
from gpulayers.lock.model import (
    Closure,
    Lock,
    LockedBase,
    LockedModel,
    LockedPython,
    PackageSet,
    Wheel,
)
from gpulayers.lock.wanted import TOOLS, ClosureWanted, Wanted
from gpulayers.lock.wheels import Question, Resolve, resolve
from gpulayers.matrix.model import FolderModel, Matrix
from gpulayers.refs import Platform

INDEX = "default"
WORKERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a lock is made with.

    Shape: ``inputs`` gives the settings once the bases' suites are known; ``resolve`` answers
    which wheels a set of requirements needs.
    """

    workshop: Workshop
    inputs: Callable[[Mapping[str, str]], Inputs]
    resolve: Resolve = resolve


def make(matrix: Matrix, ask: Wanted, sources: Sources) -> Lock:
    """Resolve everything that is wanted.

    Raises: RemoteError: something did not answer; ProjectError: something does not exist.
    """
    settings = sources.inputs({})
    with ThreadPoolExecutor(WORKERS) as pool, ThreadPoolExecutor(WORKERS) as questions:
        uv = pool.submit(_uv, settings, ask.platforms[0], sources)
        resolved = pool.submit(_closures, ask, settings, sources, questions)
        found = _bases(ask, sources, pool)
        inputs = sources.inputs({base.os: base.suite for base in found})
        package_sets = _package_sets(ask, found, inputs, sources, pool)
        closures, wheels = resolved.result()
    return Lock(
        inputs=wanted.digest(ask),
        uv=uv.result(),
        bases=found,
        packages=package_sets,
        pythons=tuple(_python(python, names, found) for python, names in ask.pythons),
        wheels=wheels,
        closures=closures,
        models=tuple(_model(matrix, name) for name in ask.models),
    )


def refresh_models(matrix: Matrix, lock: Lock) -> Lock:
    """The same lock with the folder models as they are now: they are the project's own files."""
    return replace(lock, models=tuple(_model(matrix, entry.name) for entry in lock.models))


def _bases(ask: Wanted, sources: Sources, pool: ThreadPoolExecutor) -> tuple[LockedBase, ...]:
    """Every base, those of the same sources once: the tools' base is often an image's too."""
    places = {
        (names, platform): name
        for name, _, names in sorted(ask.bases, key=lambda base: (base[0] != TOOLS, base))
        for platform in ask.platforms
    }
    jobs = {
        (names, platform): pool.submit(bases.resolve, name, names, platform, sources.workshop)
        for (names, platform), name in places.items()
    }
    found = [
        (name, suite, jobs[names, platform].result())
        for name, suite, names in ask.bases
        for platform in ask.platforms
    ]
    return tuple(sorted(replace(b, os=name, suite=b.suite or suite) for name, suite, b in found))


def secrets_for(inputs: Inputs, os_name: str) -> tuple[Secret, ...]:
    """The secrets of a question to an OS's archive."""
    own = Secret(id="apt", source=inputs.apt_sources(os_name))
    return (own, *((Secret(id="ca", source=inputs.ca),) if inputs.ca is not None else ()))


def _package_sets(
    ask: Wanted,
    found: tuple[LockedBase, ...],
    inputs: Inputs,
    sources: Sources,
    pool: ThreadPoolExecutor,
) -> tuple[PackageSet, ...]:
    by_os = {(base.os, base.platform): base for base in found}
    jobs = [("base", os, os, names, True) for os, names in ask.os_packages]
    jobs += [(layer, TOOLS, "", names, False) for layer, names in ask.layer_packages]

    def answer(job: tuple[str, str, str, tuple[str, ...], bool], platform: Platform) -> PackageSet:
        layer, asked, os, names, with_needs = job
        sources.workshop.say(f"packages of {layer}{f' on {os}' if os else ''}")
        packages_found = packages.ask(
            sources.workshop.buildx,
            bases.reference(by_os[asked, platform], sources.workshop.root),
            names,
            secrets=secrets_for(inputs, asked),
            with_needs=with_needs,
            platform=platform.format(),
        )
        return PackageSet(layer=layer, os=os, platform=platform, packages=packages_found)

    asked = [(job, platform) for platform in ask.platforms for job in jobs]
    return tuple(sorted(pool.map(lambda pair: answer(*pair), asked)))


def _uv(inputs: Inputs, platform: Platform, sources: Sources) -> Wheel:
    question = Question(
        python="3.11", platform=platform, requirements=("uv",), fixed=(), stands_in_for=()
    )
    return sources.resolve(question, config=inputs.uv_config, index=INDEX)[0]


def _closures(
    ask: Wanted, inputs: Inputs, sources: Sources, pool: ThreadPoolExecutor
) -> tuple[tuple[Closure, ...], dict[str, Wheel]]:
    levels = sorted({len(closure.under) for closure in ask.closures})
    whole: dict[tuple[str, Platform, tuple[str, ...]], tuple[Wheel, ...]] = {}
    closures: list[Closure] = []
    asked = {(c.python, c.platform, (*c.under, c.of)): c for c in ask.closures}

    def answer(one: ClosureWanted) -> tuple[ClosureWanted, tuple[Wheel, ...]]:
        below = whole.get((one.python, one.platform, one.under), ())
        chain = [one.under[: n + 1] for n in range(len(one.under))]
        lower = [asked[one.python, one.platform, way].requirements for way in chain]
        texts = tuple(text for texts in lower for text in texts) + one.requirements
        question = Question(
            python=one.python,
            platform=one.platform,
            requirements=texts,
            fixed=below,
            stands_in_for=one.stands_in_for,
        )
        return one, sources.resolve(question, config=inputs.uv_config, index=INDEX)

    for level in levels:
        for one, wheels in pool.map(answer, [c for c in ask.closures if len(c.under) == level]):
            below = whole.get((one.python, one.platform, one.under), ())
            whole[one.python, one.platform, (*one.under, one.of)] = wheels
            files = sorted({w.file for w in wheels} - {w.file for w in below})
            closures.append(
                Closure(
                    python=one.python,
                    platform=one.platform,
                    of=one.of,
                    under=one.under,
                    files=tuple(files),
                )
            )
    everything = {wheel.file: wheel for wheels in whole.values() for wheel in wheels}
    return tuple(sorted(closures)), everything


def _python(python: str, names: tuple[str, ...], found: tuple[LockedBase, ...]) -> LockedPython:
    tools = next(base for base in found if base.os == TOOLS)
    for source in names:
        kind, _, suite = source.partition(":")
        if kind == "debian" and _has_debian_python(python, suite, tools):
            return LockedPython(python=python, source="debian", version=python)
        if kind == "standalone":
            return LockedPython(python=python, source="standalone", version=python)
    msg = f"no source gave Python {python}: {', '.join(names)}"
    raise ProjectError(
        msg, hint=f'Debian 12 has 3.11; for others put "standalone" into [python."{python}"]'
    )


def _has_debian_python(python: str, suite: str, tools: LockedBase) -> bool:
    # The packages are unpacked in the tools' base, so they are those of its release.
    return (python, suite) == ("3.11", "bookworm") and tools.suite in {"", suite}


def _model(matrix: Matrix, name: str) -> LockedModel:
    model = matrix.models[name]
    if not isinstance(model, FolderModel):
        msg = f"model {name} is no folder any more"
        raise ProjectError(msg, hint="run: gpulayers lock")
    digest, size = wanted.model_digest(model)
    return LockedModel(name=name, digest=digest, size_bytes=size)
