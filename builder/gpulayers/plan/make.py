"""Making the plan: images with their steps, names, labels and keys."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from packaging.version import Version

from gpulayers.errors import ProjectError
from gpulayers.layer import LayerDef, stack
from gpulayers.lock import wanted
from gpulayers.lock.model import PLAIN_INDEX, Wheel
from gpulayers.lock.wanted import TOOLS
from gpulayers.matrix import apps as matrix_apps
from gpulayers.matrix import tags
from gpulayers.matrix.model import NO_MODEL, Cell
from gpulayers.plan import apps, keys, steps, weights
from gpulayers.plan.model import Config, Expected, Ground, Image, Plan, Step
from gpulayers.plan.verdicts import Judging, Needed
from gpulayers.refs import Platform

LABEL = "io.gpulayers"
DEFAULT_COMMAND = ("python",)
# What NVIDIA's container runtime asks of the host before it starts a container.
REQUIREMENT = "NVIDIA_REQUIRE_CUDA"


def make(ground: Ground, cells: Sequence[Cell]) -> Plan:
    """The plan of these cells on every platform of the matrix.

    Raises: ProjectError: two images would have one name in the bake file;
        KeyError: the lock is for other cells (callers compare ``lock.inputs`` before).
    """
    # What files held at another plan is no matter.
    ground = replace(ground, hashes={}, steps={})
    platforms = ground.matrix.images.platforms
    judging = ground.judging if ground.judging is not None else Judging(ground.matrix)
    checks = keys.checks(ground.library.folders)
    images = tuple(
        _image(ground, cell, platform, tag, judging.needed(cell, platform), checks)
        for cell, tag in tags.tags(ground.matrix, cells).items()
        for platform in wanted.platforms(ground.matrix, ground.library, cell, ground.served)
    )
    _check_targets(images)
    unique = {step.stage: step for image in images for step in image.steps}
    return Plan(
        images=images,
        steps=tuple(unique.values()),
        tools=steps.tools(ground, platforms[0]),
    )


def _check_targets(images: Sequence[Image]) -> None:
    """Bake knows fewer names than a registry does: tags can differ in what they leave out."""
    first: dict[str, Image] = {}
    for image in images:
        twin = first.setdefault(image.target, image)
        if twin is not image:
            msg = (
                f"wanted a name of its own in the bake file for each image, found {image.target!r} "
                f"for {twin.cell.format()} (tag {twin.tag}) and for {image.cell.format()} "
                f"(tag {image.tag})"
            )
            hint = "tags have to differ in more than case and punctuation: change images.tag"
            raise ProjectError(msg, hint=hint)


def _target(tag: str, platform: Platform) -> str:
    name = keys.slug(tag if platform.architecture == "amd64" else f"{tag}-{platform.architecture}")
    # Bake's own word for the group of all of them.
    return name if name not in {"", "default"} else f"image-{name}".rstrip("-")


def _base(ground: Ground, os_name: str, platform: Platform) -> str:
    base = ground.lock.base(os_name, platform)
    return f"{base.repository or f'{ground.root}/base'}@{base.digest}"


def _image(
    ground: Ground,
    cell: Cell,
    platform: Platform,
    tag: str,
    needed: Needed,
    checks: Sequence[str],
) -> Image:
    own = steps.of_image(ground, cell, platform)
    layers = _layers(ground, cell)
    locked = _locked(ground, cell, platform)
    wheels = {wheel.name: wheel.version for wheel in locked}
    expected = _expected(ground, cell, platform, wheels)
    labels = _labels(ground, cell, platform, tag=tag, wheels=wheels) | _of_driver(needed)
    config = _config(ground, cell, layers, platform, labels, needed.requirement)
    key = _key(ground.lock.base(cell.os, platform).digest, own, config, expected, checks)
    return Image(
        cell=cell,
        platform=platform,
        target=_target(tag, platform),
        tag=tag,
        key=key,
        base=_base(ground, cell.os, platform),
        tools=steps.tools(ground, platform),
        tools_base=_base(ground, TOOLS, platform),
        steps=own,
        config=_with_label(config, f"{LABEL}.key", key),
        expected=expected,
        wheels=wheels,
        smoke=_smoke(ground, cell, layers),
        indexes=tuple(sorted({wheel.index for wheel in locked} - {PLAIN_INDEX})),
    )


def _key(
    base: str, own: Sequence[Step], config: Config, expected: Expected, checks: Sequence[str]
) -> str:
    return keys.of_value(
        {
            "recipe": keys.RECIPE,
            "base": base,
            "steps": [step.key for step in own],
            "env": dict(config.env),
            "labels": dict(config.labels),
            "user": config.user,
            "entrypoint": config.entrypoint,
            "command": config.command,
            **_more(config),
            "expected": [
                expected.python,
                expected.machine,
                expected.cuda,
                expected.distribution,
                expected.module,
                expected.version,
                expected.duplicate_mb,
            ],
            # An image that was checked by others is another one.
            "checks": checks,
        }
    )


def _more(config: Config) -> Mapping[str, object]:
    """What only images with an app say of themselves; the keys of others stay as they are."""
    check = config.health_check
    found = {
        "ports": config.ports,
        "workdir": config.workdir,
        "health-check": asdict(check) if check is not None else {},
    }
    return {name: value for name, value in found.items() if value}


def _with_label(config: Config, name: str, value: str) -> Config:
    return replace(config, labels=dict(sorted({**config.labels, name: value}.items())))


def _layers(ground: Ground, cell: Cell) -> tuple[LayerDef, ...]:
    own = (ground.library.single("base"), *stack(ground.library, cell.framework.name))
    model = (ground.library.single("model"),) if cell.model != NO_MODEL else ()
    return (*own, *model, *apps.layers(ground, cell))


def _config(
    ground: Ground,
    cell: Cell,
    layers: Sequence[LayerDef],
    platform: Platform,
    labels: Mapping[str, str],
    requirement: str,
) -> Config:
    env = dict.fromkeys(ground.lock.base(cell.os, platform).blanks, "")
    entrypoint: tuple[str, ...] = ()
    for layer in layers:
        env.update(layer.env)
        entrypoint = layer.entrypoint or entrypoint
    env.update(weights.env(ground, cell.model))
    if requirement:
        # NVIDIA's own, of a base that has one, knows nothing of what stands on it.
        env[REQUIREMENT] = requirement
    env.update(ground.matrix.images.env)
    plain = Config(
        env=env,
        labels=dict(sorted(labels.items())),
        user=ground.matrix.images.user,
        entrypoint=entrypoint,
        command=DEFAULT_COMMAND,
    )
    app = matrix_apps.of(ground.matrix, cell)
    return plain if app is None else apps.config(plain, app)


def _labels(
    ground: Ground, cell: Cell, platform: Platform, *, tag: str, wheels: Mapping[str, str]
) -> dict[str, str]:
    base = ground.lock.base(cell.os, platform)
    labels = {
        "org.opencontainers.image.title": ground.matrix.images.name,
        "org.opencontainers.image.version": tag,
        "org.opencontainers.image.base.name": base.source,
        "org.opencontainers.image.base.digest": base.digest,
        f"{LABEL}.framework.name": cell.framework.name,
        f"{LABEL}.framework.version": cell.framework.version,
    }
    values = cell.values()
    labels |= {f"{LABEL}.{axis}": values[axis] for axis in ("os", "python", "cuda", "model")}
    labels |= weights.labels(ground, cell.model)
    shown = (name for name in wheels if name.startswith("nvidia-") or name == "cuda-toolkit")
    return labels | {f"{LABEL}.wheel.{name}": wheels[name] for name in shown}


def _of_driver(needed: Needed) -> dict[str, str]:
    """The oldest driver that runs the image, and the oldest that knows its CUDA."""
    found = {"minimum": needed.driver.minimum, "native": needed.driver.native}
    return {f"{LABEL}.driver.{name}": d.format() for name, d in found.items() if d is not None}


def _locked(ground: Ground, cell: Cell, platform: Platform) -> list[Wheel]:
    """All wheels of an image, by name; of two of one name, the higher layer's."""
    python = cell.python.format()
    cuda = wanted.cuda_name(ground.matrix, ground.library, cell)
    names: list[tuple[str, tuple[str, ...]]] = [(cuda, ()), (cell.framework.format(), (cuda,))]
    if wanted.model_requirements(ground.matrix, cell.model):
        names.append((wanted.model_name(cell.model), (cuda, cell.framework.format())))
    found = {
        wheel.name: wheel
        for of, under in names
        for wheel in ground.lock.closure(python, platform, of, under)
    }
    found |= {wheel.name: wheel for wheel in apps.wheels(ground, cell, platform)}
    return [found[name] for name in sorted(found)]


def _expected(
    ground: Ground, cell: Cell, platform: Platform, wheels: Mapping[str, str]
) -> Expected:
    layer = ground.library.layers[cell.framework.name]
    identity = layer.identity
    texts = (identity.distribution, identity.module) if identity is not None else ("", "")
    distribution, module = wanted.requirement_texts(texts, cell, ())
    return Expected(
        python=cell.python.format(),
        machine=platform.machine,
        cuda=cell.cuda.format(),
        distribution=distribution,
        module=module,
        # An index of a variant adds to the version: 2.8.0+cu126.
        version=_as_locked(cell.framework.version, wheels.get(distribution, "")),
        duplicate_mb=ground.matrix.budget.duplicate_mb,
    )


def _as_locked(version: str, locked: str) -> str:
    return locked if locked and Version(locked).public == Version(version).public else version


def _smoke(ground: Ground, cell: Cell, layers: Sequence[LayerDef]) -> tuple[Path, ...]:
    found = [path for layer in layers for path in layer.smoke]
    model = ground.matrix.models.get(cell.model)
    for owner in (model, matrix_apps.of(ground.matrix, cell)):
        if owner is not None and owner.smoke is not None:
            found += sorted(owner.smoke.glob("*.py")) if owner.smoke.is_dir() else [owner.smoke]
    return tuple(found)
