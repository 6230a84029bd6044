"""The steps of an image, layer by layer: big wheels alone, the small rest of a layer together."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from gpulayers.inputs import plain
from gpulayers.layer import LayerDef, stack
from gpulayers.lock import wanted
from gpulayers.lock.apps import layer_name
from gpulayers.lock.model import PLAIN_INDEX, Package, Wheel
from gpulayers.lock.wanted import TOOLS
from gpulayers.matrix import apps as matrix_apps
from gpulayers.matrix.model import NO_MODEL, Cell, FolderModel
from gpulayers.plan import apps, weights
from gpulayers.plan.keys import Draft, step
from gpulayers.plan.model import Ground, Step
from gpulayers.refs import Platform

MB = 10**6
# Where the loader of Debian and its kin looks without being told.
LIBRARIES = {"x86_64": "/usr/lib/x86_64-linux-gnu", "aarch64": "/usr/lib/aarch64-linux-gnu"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which image the steps are for; ``alone`` are files of wheels that are steps of their own."""

    ground: Ground
    cell: Cell
    platform: Platform
    alone: frozenset[str]

    @property
    def shown(self) -> str:
        """The platform as text."""
        return self.platform.format()


def tools(ground: Ground, platform: Platform) -> Step:
    """The step with what the other steps work with."""
    return _once(ground, (TOOLS, platform), lambda: [_tools(ground, platform)])[0]


def _once(
    ground: Ground, key: tuple[object, ...], make: Callable[[], Iterable[Step]]
) -> tuple[Step, ...]:
    """The steps that all of ``key`` leads to, made when they are first wanted in a plan."""
    found = ground.steps.get(key)
    if found is None:
        found = ground.steps[key] = tuple(make())
    return found


def _tools(ground: Ground, platform: Platform) -> Step:
    layer = ground.library.single("tools")
    uv = ground.lock.uv_for(platform)
    return step(
        Draft(
            name=TOOLS,
            layer=layer,
            ground=ground,
            stage=TOOLS,  # templates call it by this name
            platform=platform.format(),
            base=ground.lock.base(TOOLS, platform).digest,
            values={
                "apt_secret": f"apt-{TOOLS}",
                "packages": tuple(
                    f"{package.name}={package.version}"
                    for package in ground.lock.package_set(layer.name, platform)
                ),
                "uv": (f"{uv.name}=={uv.version} --hash=sha256:{uv.sha256}",),
            },
        )
    )


def of_image(ground: Ground, cell: Cell, platform: Platform) -> tuple[Step, ...]:
    """The steps of a cell's image, lowest first."""
    alone = _alone(ground, cell, platform)
    place = Place(ground=ground, cell=cell, platform=platform, alone=alone)
    below = tools(ground, platform)
    found = [*_os_step(place, below)]
    python: Step | None = None
    for layer in stack(ground.library, cell.framework.name):
        if layer.kind in {"tool", "python"}:
            made = _package_step(place, layer, below)
            found.append(made)
            python = made if layer.kind == "python" else python
        elif python is not None:
            found += _wheel_steps(
                place, layer, python, _layer_wheels(ground, cell, platform, layer)
            )
    if python is not None and cell.model != NO_MODEL:
        found += _model_steps(place, python)
        found += weights.steps(ground, cell.model, platform, below=below, python=python)
    if python is not None:
        found += _app_steps(place, below, python, tuple(found))
    return tuple(found)


def _app_steps(place: Place, below: Step, python: Step, found: tuple[Step, ...]) -> Iterator[Step]:
    floor = apps.Floor(
        tools=below, python=python, lower=found, libraries=LIBRARIES[place.platform.machine]
    )

    def wheels(layer: LayerDef, own: Sequence[Wheel]) -> Iterator[Step]:
        return _wheel_steps(place, layer, python, own)

    return apps.steps(place.ground, place.cell, place.platform, floor, wheels)


def _os_packages(place: Place) -> tuple[Package, ...]:
    """Those of an app with packages of its own, which are all of its image, or the OS's."""
    lock, os = place.ground.lock, place.cell.os
    app = matrix_apps.of(place.ground.matrix, place.cell)
    own = lock.package_set(layer_name(app), place.platform, os=os) if app is not None else ()
    return own or lock.package_set("base", place.platform, os=os)


def _os_step(place: Place, below: Step) -> tuple[Step, ...]:
    packages = _os_packages(place)
    if not packages:
        return ()

    def make() -> Iterator[Step]:
        yield step(
            Draft(
                name=f"packages-{place.cell.os}",
                layer=place.ground.library.single("base"),
                ground=place.ground,
                platform=place.shown,
                base=place.ground.lock.base(place.cell.os, place.platform).digest,
                under=(below,),
                values={"apt_secret": f"apt-{place.cell.os}", "packages": packages},
            )
        )

    return _once(place.ground, ("os", place.cell.os, place.platform, packages), make)


def _package_step(place: Place, layer: LayerDef, below: Step) -> Step:
    key = (layer.name, place.cell.python, place.platform)
    return _once(place.ground, key, lambda: [_new_package_step(place, layer, below)])[0]


def _new_package_step(place: Place, layer: LayerDef, below: Step) -> Step:
    python = place.cell.python.format()
    is_python = layer.kind == "python"
    source = place.ground.lock.python(python)
    is_debian = not is_python or source.source == "debian"
    packages = place.ground.lock.package_set(layer.name, place.platform) if is_debian else ()
    return step(
        Draft(
            name=f"python-{python}" if is_python else layer.name,
            layer=layer,
            ground=place.ground,
            platform=place.shown,
            under=(below,),
            values={
                "apt_secret": f"apt-{TOOLS}",
                "packages": packages,
                "machine": place.platform.machine,
                "python": python if is_python else "",
                "debian": is_debian,
                "standalone": source.version if is_python else "",
            },
        )
    )


def _layer_wheels(
    ground: Ground, cell: Cell, platform: Platform, layer: LayerDef
) -> tuple[Wheel, ...]:
    cuda = wanted.cuda_name(ground.matrix, ground.library, cell)
    names = {"cuda": (cuda, ()), "framework": (cell.framework.format(), (cuda,))}
    if layer.kind not in names:
        return ()
    of, under = names[layer.kind]
    return ground.lock.closure(cell.python.format(), platform, of, under)


def _alone(ground: Ground, cell: Cell, platform: Platform) -> frozenset[str]:
    """The files of wheels that are steps of their own: the biggest, as many as there is room."""
    recipe = ground.matrix.recipe
    layers = stack(ground.library, cell.framework.name)
    # Beside one step a layer: the OS's packages, the model's wheels and files, and the mark of the
    # identity check.
    room = recipe.max_layers - len(layers) - 3 - weights.count(ground, cell.model)
    room -= apps.count(ground, cell)
    big = [
        wheel
        for layer in layers
        for wheel in _layer_wheels(ground, cell, platform, layer)
        if _is_big(wheel, recipe.big_wheel_mb * MB)
    ]
    limit = recipe.big_wheel_mb * MB
    own = apps.wheels(ground, cell, platform)
    big += [wheel for wheel in own if _is_big(wheel, limit)]
    biggest = sorted(big, key=lambda wheel: (-wheel.size_bytes, wheel.file))[: max(0, room)]
    return frozenset(wheel.file for wheel in biggest)


def _is_big(wheel: Wheel, limit: int) -> bool:
    # An index of a framework's own may say no sizes, and is there for the big ones.
    return wheel.size_bytes >= limit or (wheel.index != PLAIN_INDEX and not wheel.size_bytes)


def _wheel_steps(
    place: Place, layer: LayerDef, python: Step, wheels: Sequence[Wheel]
) -> Iterator[Step]:
    alone = place.alone
    big = [wheel for wheel in wheels if wheel.file in alone]
    rest = [wheel for wheel in wheels if wheel.file not in alone]
    # What a layer needs beside its own big wheels changes least often: it stands lowest.
    yield from _small_steps(place, layer, python, rest, name=f"{layer.name}-wheels")
    for wheel in sorted(big, key=lambda one: one.name):
        yield _wheel_step(place, layer, python, [wheel], name=f"{wheel.name}-{wheel.version}")


def _small_steps(
    place: Place, layer: LayerDef, python: Step, wheels: Sequence[Wheel], *, name: str
) -> Iterator[Step]:
    """Wheels together, but for those of another index: a step asks one."""
    for index, some in apps.by_index(wheels).items():
        more = "" if index == PLAIN_INDEX else f"-{plain(index)}"
        yield _wheel_step(place, layer, python, some, name=f"{name}{more}")


def _wheel_step(
    place: Place, layer: LayerDef, python: Step, wheels: Sequence[Wheel], *, name: str
) -> Step:
    key = (layer.name, python.key, name, *(wheel.file for wheel in wheels))
    made = partial(_new_wheel_step, place, layer, python, wheels, name=name)
    return _once(place.ground, key, lambda: [made()])[0]


def _new_wheel_step(
    place: Place, layer: LayerDef, python: Step, wheels: Sequence[Wheel], *, name: str
) -> Step:
    return step(
        Draft(
            name=name,
            layer=layer,
            ground=place.ground,
            platform=place.shown,
            under=(python,),
            size_bytes=sum(wheel.size_bytes for wheel in wheels),
            values={
                "venv": f"{python.stage}-venv",
                "libraries": LIBRARIES[place.platform.machine],
                "wheels": apps.lines(wheels),
                "model": "",
                **_config_of(wheels[0].index),
            },
        )
    )


def _config_of(index: str) -> dict[str, str]:
    """The secret with the index that a step asks, where it is not the plain one."""
    return {} if index == PLAIN_INDEX else {"uv_config": apps.config_name(index)}


def _model_steps(place: Place, python: Step) -> Iterator[Step]:
    ground, cell = place.ground, place.cell
    layer = ground.library.single("model")
    if wanted.model_requirements(ground.matrix, cell.model):
        under = (wanted.cuda_name(ground.matrix, ground.library, cell), cell.framework.format())
        of = wanted.model_name(cell.model)
        wheels = ground.lock.closure(cell.python.format(), place.platform, of, under)
        yield from _small_steps(place, layer, python, wheels, name=f"model-{cell.model}-wheels")
    model = ground.matrix.models[cell.model]
    if isinstance(model, FolderModel):
        yield _folder_step(place, layer, python, model)


def _folder_step(place: Place, layer: LayerDef, python: Step, model: FolderModel) -> Step:
    locked = place.ground.lock.model(model.name)
    check = model.check
    aside = [path for path in (check, model.smoke) if path is not None]
    inside = [p.relative_to(model.path) for p in aside if p.is_relative_to(model.path)]
    return step(
        Draft(
            name=f"model-{model.name}",
            layer=layer,
            ground=place.ground,
            platform=place.shown,
            under=(python,),
            context=(f"model-{model.name}", model.path),
            context_digest=locked.digest,
            size_bytes=locked.size_bytes,
            values={
                "venv": f"{python.stage}-venv",
                "wheels": (),
                "model": model.name,
                "context": f"model-{model.name}",
                "group": "",
                "reference": "",
                # Words for a shell.
                "leave_out": ("__pycache__", *(shlex.quote(f"./{path}") for path in inside)),
                "check": shlex.quote(f"{check.relative_to(model.path)}") if check else "",
            },
        )
    )
