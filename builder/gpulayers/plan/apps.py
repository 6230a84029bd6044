"""Steps and configuration of an app: what the project itself puts on top of an image."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpulayers.inputs import plain
from gpulayers.layer import LayerDef
from gpulayers.lock import apps as locked
from gpulayers.lock import wanted
from gpulayers.lock.model import PLAIN_INDEX, Wheel
from gpulayers.lock.wanted import TOOLS
from gpulayers.lock.wheels import GLIBC
from gpulayers.matrix import apps, patterns
from gpulayers.matrix.model import App, Cell
from gpulayers.plan import trees
from gpulayers.plan.keys import Draft, step
from gpulayers.plan.model import Config, Ground, Step, Value
from gpulayers.refs import Platform

# How the layers' own wheels become steps: ``plan.steps`` knows.
WheelSteps = Callable[[LayerDef, Sequence[Wheel]], Iterator[Step]]
LABEL = "io.gpulayers.app"
# Layers whose steps are parts of the virtual environment, or of the Python below it.
OF_PYTHON = ("python", "cuda", "framework", "devel", "app")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What an app's steps are made upon.

    Shape: ``tools`` is the step with the tools, ``python`` that with Python; ``lower`` are the
    image's steps below the app's; ``libraries`` is the loader's folder.
    """

    tools: Step
    python: Step
    lower: tuple[Step, ...]
    libraries: str


def layers(ground: Ground, cell: Cell) -> tuple[LayerDef, ...]:
    """The layers that an app adds to its images."""
    app = apps.of(ground.matrix, cell)
    if app is None:
        return ()
    devel = (ground.library.single("devel"),) if app.flavour == "devel" else ()
    return (*devel, ground.library.single("app"))


def closures(
    ground: Ground, cell: Cell, platform: Platform
) -> Iterator[tuple[str, tuple[Wheel, ...]]]:
    """The app's closures by name, lowest first, each with its wheels."""
    app = apps.of(ground.matrix, cell)
    if app is None:
        return
    names = {locked.DEVEL, locked.layer_name(app), locked.build_name(app)}
    for one in wanted.closures(ground.matrix, ground.library, cell):
        if one.platform == platform and one.of in names:
            yield one.of, ground.lock.closure(one.python, platform, one.of, one.under)


def wheels(ground: Ground, cell: Cell, platform: Platform) -> tuple[Wheel, ...]:
    """All wheels that an app brings into the image, without those that only its build needs."""
    found = closures(ground, cell, platform)
    return tuple(one for name, own in found for one in own if not name.endswith(" build"))


def count(ground: Ground, cell: Cell) -> int:
    """The most steps and other layers that an app adds, beside wheels that stand alone."""
    app = apps.of(ground.matrix, cell)
    # The devel flavour's wheels and links; the app's wheels, its source, and its working folder.
    return 0 if app is None else 2 * (app.flavour == "devel") + len(app.extensions) + 3


def steps(
    ground: Ground, cell: Cell, platform: Platform, floor: Floor, wheel_steps: WheelSteps
) -> Iterator[Step]:
    """The steps of a cell's app, lowest first: what changes often stands high."""
    app = apps.of(ground.matrix, cell)
    if app is None:
        return
    found = dict(closures(ground, cell, platform))
    shown = platform.format()
    kinds = {name: layer.kind for name, layer in ground.library.layers.items()}
    below = [one for one in floor.lower if kinds[one.layer] in OF_PYTHON]
    if app.flavour == "devel":
        layer = ground.library.single("devel")
        made = [*wheel_steps(layer, found.get(locked.DEVEL, ()))]
        made.append(_cuda_home(ground, shown, floor, [*below, *made]))
        below += made
        yield from made
    made = [*wheel_steps(ground.library.single("app"), found.get(locked.layer_name(app), ()))]
    below += made
    yield from made
    tools = found.get(locked.build_name(app), ())
    for folder in app.extensions:
        yield _extension(
            _Work(ground=ground, app=app, floor=floor, shown=shown), folder, below, tools
        )
    if app.source is not None or app.workdir:
        yield _source(_Work(ground=ground, app=app, floor=floor, shown=shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    ground: Ground
    app: App
    floor: Floor
    shown: str

    def draft(
        self, name: str, under: Sequence[Step], values: Mapping[str, Value], folder: Path | None
    ) -> Step:
        """A step of the app's layer, with a folder of the project."""
        layer = self.ground.library.single("app")
        rules: tuple[str, ...] = ()
        digest, size, context = "", 0, None
        if folder is not None:
            rules = patterns.of_folder(
                folder, self.app.leave_out if folder == self.app.source else ()
            )
            digest, size = trees.digest(folder, rules, self.ground.trees)
            context = (name, folder)
        return step(
            Draft(
                name=name,
                layer=layer,
                ground=self.ground,
                platform=self.shown,
                under=under,
                context=context,
                context_digest=digest,
                size_bytes=size,
                values={
                    "wheels": (),
                    "extension": False,
                    "context": name if folder is not None else "",
                    "leave_out": rules,
                    **values,
                },
            )
        )


def _cuda_home(ground: Ground, shown: str, floor: Floor, below: Sequence[Step]) -> Step:
    return step(
        Draft(
            name="cuda-home",
            layer=ground.library.single("devel"),
            ground=ground,
            platform=shown,
            under=below,
            values={
                "venv": f"{floor.python.stage}-venv",
                "wheels": (),
                "stages": tuple(one.stage for one in below if one.stage != floor.python.stage),
                "root": "/out",
            },
        )
    )


def _extension(work: _Work, folder: Path, below: Sequence[Step], tools: Sequence[Wheel]) -> Step:
    name = f"app-{work.app.name}-{folder.name}"
    layer = work.ground.library.single("app")
    platform = Platform.parse(work.shown)
    sorted_tools = by_index(tools)
    values: dict[str, Value] = {
        "venv": f"{work.floor.python.stage}-venv",
        "extension": True,
        "libraries": work.floor.libraries,
        "stages": tuple(one.stage for one in below),
        "build_wheels": lines(sorted_tools.pop(PLAIN_INDEX, ())),
        "apt_secret": f"apt-{TOOLS}",
        "packages": tuple(
            f"{one.name}={one.version}"
            for one in work.ground.lock.package_set(layer.name, platform)
        ),
        "copied_to": "/tmp/source",  # noqa: S108 - inside a build stage
        "root": "/",
        "glibc": f"{GLIBC}",
    }
    if sorted_tools:
        values["more_build_wheels"] = tuple(
            (config_name(index), lines(some)) for index, some in sorted_tools.items()
        )
    return work.draft(name, below, values, folder)


def _source(work: _Work) -> Step:
    app = work.app
    folders = [app.target] if app.source is not None else []
    values: dict[str, Value] = {
        "copied_to": f"/out{app.target}",
        "folders": tuple(dict.fromkeys([*folders, *([app.workdir] if app.workdir else [])])),
    }
    return work.draft(f"app-{app.name}", (work.floor.tools,), values, app.source)


def config(plain: Config, app: App) -> Config:
    """What an image with an app says of itself.

    Shape: the app's entrypoint stands after that of the layers (tini), which runs it.
    """
    labels = {**plain.labels, LABEL: app.name}
    return replace(
        plain,
        env={**plain.env, **app.env},
        labels=dict(sorted(labels.items())),
        user=app.user or plain.user,
        entrypoint=(*plain.entrypoint, *app.entrypoint),
        command=app.command or (() if app.entrypoint else plain.command),
        ports=app.ports,
        workdir=app.workdir,
        health_check=app.health_check,
    )


def by_index(wheels: Sequence[Wheel]) -> dict[str, list[Wheel]]:
    """Wheels by the index they come from, the plain one first: no installer asks two at once."""
    found: dict[str, list[Wheel]] = {}
    for wheel in sorted(wheels, key=lambda one: (one.index != PLAIN_INDEX, one.index)):
        found.setdefault(wheel.index, []).append(wheel)
    return found


def config_name(index: str) -> str:
    """The secret with the settings of an index that is not the plain one."""
    return f"uv-config-{plain(index)}"


def lines(wheels: Sequence[Wheel]) -> tuple[str, ...]:
    """Wheels as an installer reads them, with their hashes."""
    return tuple(f"{w.name}=={w.version} --hash=sha256:{w.sha256}" for w in sorted(wheels))
