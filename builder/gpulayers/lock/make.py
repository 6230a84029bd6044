"""Making a lock: asks registries, archives and the package index what there is, once."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from gpulayers import bases
from gpulayers.bases import Workshop
from gpulayers.engine.buildx import Secret
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.inputs import Inputs
from gpulayers.lock import closures, packages, pythons, wanted
from gpulayers.lock.model import (
    UV,
    Closure,
    Lock,
    LockedBase,
    LockedModel,
    LockedPython,
    PackageSet,
    Wheel,
)
from gpulayers.lock.pythons import Standalone, newest_standalone
from gpulayers.lock.update import Keeping
from gpulayers.lock.wanted import TOOLS, Wanted
from gpulayers.lock.wheels import Question, Resolve, resolve
from gpulayers.matrix.model import ArtifactModel, FetchedModel, FolderModel, HubModel, Matrix
from gpulayers.refs import Platform

# The one of the tools' base, Debian 12.
UV_PYTHON = "3.11"
WORKERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a lock is made with.

    Shape: ``inputs`` gives the settings once the bases' suites are known; ``resolve`` answers
    which wheels a set of requirements needs, ``standalone`` which build of a Python is newest,
    ``pin`` what a model that is fetched is now.
    """

    workshop: Workshop
    inputs: Callable[[Mapping[str, str]], Inputs]
    resolve: Resolve = resolve
    standalone: Standalone = newest_standalone
    pin: Callable[[FetchedModel], LockedModel] | None = None

    def wheels(self, question: Question, inputs: Inputs) -> tuple[Wheel, ...]:
        """The wheels of a question, with the machine's settings."""
        return self.resolve(question, config=inputs.uv_config, indexes=inputs.indexes)


def make(matrix: Matrix, ask: Wanted, sources: Sources, keep: Keeping | None = None) -> Lock:
    """Resolve everything that is wanted; with ``keep`` only what it names, all else stays.

    Raises: RemoteError: something did not answer; ProjectError: something does not exist.
    """
    settings = sources.inputs({})
    part = ask if keep is None else keep.part(ask)
    with _pool() as pool, _pool() as questions:
        uvs = {each: _uv_wheel(keep, settings, each, sources, pool) for each in ask.platforms}
        resolved = pool.submit(
            closures.resolve, ask.closures, lambda q: sources.wheels(q, settings), questions, keep
        )
        found = tuple(sorted((*_bases(part, sources, pool), *(keep.bases() if keep else ()))))
        inputs = sources.inputs({base.os: base.suite for base in found})
        package_sets = _package_sets(part, found, inputs, sources, pool)
        layers, wheels = resolved.result()
    uv = {platform: job() for platform, job in uvs.items()}
    first, more = uv[ask.platforms[0]], [*uv.items()][1:]
    python = _pythons(part, found, settings, sources)
    models = _models(matrix, part, sources)
    if keep is not None:
        old, moving = keep.lock, keep.names
        package_sets = tuple(sorted((*package_sets, *keep.packages())))
        python = tuple(sorted((*python, *(e for e in old.pythons if e.python not in moving))))
        models = tuple(sorted((*models, *(e for e in old.models if e.name not in moving))))
    return Lock(
        inputs=wanted.digest(ask),
        uv=first,
        bases=found,
        packages=package_sets,
        pythons=python,
        wheels={**wheels, **{wheel.file: wheel for _, wheel in more}},
        closures=tuple(sorted((*layers, *(_uv_closure(*pair) for pair in more)))),
        models=models,
    )


def _uv_wheel(
    keep: Keeping | None,
    inputs: Inputs,
    platform: Platform,
    sources: Sources,
    pool: ThreadPoolExecutor,
) -> Callable[[], Wheel]:
    if keep is not None and UV not in keep.names:
        return partial(keep.lock.uv_for, platform)
    return pool.submit(_uv, inputs, platform, sources).result


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """Workers that start nothing more once something failed: a fleet is hundreds of questions."""
    with ThreadPoolExecutor(WORKERS) as workers:
        try:
            yield workers
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise


def refresh_models(matrix: Matrix, lock: Lock) -> Lock:
    """The same lock with the folder models as they are now: they are the project's own files."""
    return replace(
        lock,
        models=tuple(e if e.source else _model(matrix, e.name) for e in lock.models),
    )


def _models(matrix: Matrix, ask: Wanted, sources: Sources) -> tuple[LockedModel, ...]:
    found = [_model(matrix, name) for name in ask.models]
    for name, *_ in ask.fetched:
        model = matrix.models[name]
        sources.workshop.say(f"model {name}")
        if sources.pin is not None and isinstance(model, HubModel | ArtifactModel):
            found.append(sources.pin(model))
    return tuple(sorted(found))


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
    errors = [error for job in jobs.values() if (error := job.exception()) is not None]
    lost = [error for error in errors if isinstance(error, RemoteError)]
    if len(lost) > 1:
        logins = dict.fromkeys(error.hint for error in lost if "docker login" in error.hint)
        hint = "; ".join(logins) or "add sources that this machine can reach to these [base.OS]"
        raise RemoteError("\n".join(dict.fromkeys(map(str, lost))), hint=hint)
    found = [
        (name, suite, jobs[names, platform].result())
        for name, suite, names in ask.bases
        for platform in ask.platforms
    ]
    return tuple(sorted(replace(b, os=name, suite=b.suite or suite) for name, suite, b in found))


def secrets_for(inputs: Inputs, os_name: str) -> tuple[Secret, ...]:
    """The secrets of a question to an OS's archive."""
    own = Secret(id="apt", source=inputs.apt_sources(os_name))
    logins = Secret(id="apt-auth", source=inputs.apt_auth)
    return (own, logins, *((Secret(id="ca", source=inputs.ca),) if inputs.ca is not None else ()))


def _package_sets(
    ask: Wanted,
    found: tuple[LockedBase, ...],
    inputs: Inputs,
    sources: Sources,
    pool: ThreadPoolExecutor,
) -> tuple[PackageSet, ...]:
    by_os = {(base.os, base.platform): base for base in found}
    jobs = [("base", os, os, names, True) for os, names in ask.os_packages]
    jobs += [(app, os, os, names, True) for app, os, names in ask.app_packages]
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
        python=UV_PYTHON, platform=platform, requirements=(UV,), fixed=(), stands_in_for=()
    )
    return sources.wheels(question, inputs)[0]


def _uv_closure(platform: Platform, wheel: Wheel) -> Closure:
    """The uv of a platform beside the first."""
    return Closure(python=UV_PYTHON, platform=platform, of=UV, under=(), files=(wheel.file,))


def _pythons(
    ask: Wanted, found: tuple[LockedBase, ...], inputs: Inputs, sources: Sources
) -> tuple[LockedPython, ...]:
    tools = next(base for base in found if base.os == TOOLS)
    return tuple(
        pythons.choose(
            python,
            names,
            tools_suite=tools.suite,
            standalone=lambda one: sources.standalone(one, ask.platforms, inputs.uv_config),
        )
        for python, names in ask.pythons
    )


def _model(matrix: Matrix, name: str) -> LockedModel:
    model = matrix.models[name]
    if not isinstance(model, FolderModel):
        msg = f"model {name} is no folder any more"
        raise ProjectError(msg, hint="run: gpulayers lock")
    digest, size = wanted.model_digest(model)
    return LockedModel(name=name, digest=digest, size_bytes=size)
