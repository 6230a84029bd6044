"""One plain bake file for all images: what a person runs by hand, and what we run ourselves."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.inputs import PROXIES, index_file, plain
from gpulayers.plan.keys import EPOCH
from gpulayers.plan.model import Image, Plan
from gpulayers.render import mounts

# The same words for image and cache, or the same layer would be stored twice.
COMPRESSION = "compression=zstd,compression-level=3,oci-mediatypes=true"
CACHE_OPTIONS = f"mode=min,image-manifest=true,ignore-error=true,{COMPRESSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What stands beside the images.

    Shape: ``root`` is the registry and path, ``name`` the repository below it, ``project`` the
    project's folder.
    """

    root: str
    name: str
    project: Path


def text(plan: Plan, around: Surroundings) -> str:
    """The bake file: the same plan, the same bytes."""
    providers = cache_providers(plan.images)
    secrets = sorted({name for image in plan.images for name in secrets_of(image)})
    document = {
        "//": "Made by gpulayers from matrix.toml, matrix.lock.toml and layers/. Do not edit.",
        "variable": {
            "REGISTRY": {"default": around.root},
            "INPUTS": {"default": "inputs"},
            "PROJECT": {"default": "../.."},
            "NETWORK": {"default": "default"},
            **{name: {"default": ""} for name in PROXIES},
            **{mounts.variable(name): {"default": f"src=secrets/{name}"} for name in secrets},
        },
        "group": {"default": {"targets": [image.target for image in plan.images]}},
        "target": {
            image.target: _target(image, around, providers[image.target]) for image in plan.images
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def secrets_of(image: Image) -> tuple[str, ...]:
    """The ids of the secrets that an image's steps ask for, beside the machine's settings."""
    return tuple(sorted({name for step in (image.tools, *image.steps) for name in step.secrets}))


def cache_providers(images: Sequence[Image]) -> Mapping[str, tuple[str, ...]]:
    """For each target the targets whose caches hold all of its steps: its own, then few others."""
    first: dict[str, str] = {}
    for image in images:
        for step in image.steps:
            first.setdefault(step.stage, image.target)
    return {
        image.target: tuple(
            dict.fromkeys([image.target, *(first[step.stage] for step in image.steps)])
        )
        for image in images
    }


def _target(image: Image, around: Surroundings, providers: Sequence[str]) -> dict[str, object]:
    cache = f"${{REGISTRY}}/{around.name}-cache"
    # Built by hand it waits for its gates as ours do: the tags that people pull are not touched.
    ref = f"${{REGISTRY}}/{around.name}:{image.staging}"
    return {
        "context": ".",
        "dockerfile": f"images/{image.target}.Dockerfile",
        "target": "image",
        "platforms": [image.platform.format()],
        "contexts": _contexts(image, around),
        "args": {
            "SOURCE_DATE_EPOCH": str(EPOCH),
            **{name: f'${{{name} != "" ? {name} : null}}' for name in PROXIES},
        },
        "network": "${NETWORK}",
        "secret": [
            "id=uv-config,src=${INPUTS}/uv.toml",
            "id=pip-config,src=${INPUTS}/pip.conf",
            "id=netrc,src=${INPUTS}/netrc",
            "id=apt-auth,src=${INPUTS}/apt-auth.conf",
            "id=apt-tools,src=${INPUTS}/apt-tools.sources",
            f"id=apt-{image.cell.os},src=${{INPUTS}}/apt-{image.cell.os}.sources",
            *(
                f"id=uv-config-{plain(name)},src=${{INPUTS}}/{index_file(name)}"
                for name in image.indexes
            ),
            *(f"id={name},${{{mounts.variable(name)}}}" for name in secrets_of(image)),
        ],
        "attest": ["type=provenance,disabled=true", "type=sbom,disabled=true"],
        "cache-from": [f"type=registry,ref={cache}:{name}" for name in providers],
        "cache-to": [f"type=registry,ref={cache}:{image.target},{CACHE_OPTIONS}"],
        "output": [f"type=image,name={ref},push=true,unpack=false,store=false,{COMPRESSION}"],
    }


def _contexts(image: Image, around: Surroundings) -> dict[str, str]:
    contexts = {
        "base": f"docker-image://{_movable(image.base, around)}",
        "tools-base": f"docker-image://{_movable(image.tools_base, around)}",
    }
    # The folders of models are known without links, and the project's may be reached through some.
    project = around.project.resolve()
    for step in image.steps:
        if step.context is not None:
            name, folder = step.context
            contexts[name] = f"${{PROJECT}}/{folder.relative_to(project).as_posix()}"
    return contexts


def _movable(reference: str, around: Surroundings) -> str:
    """A base of ours lies below the registry, which is a variable."""
    if reference.startswith(f"{around.root}/"):
        return f"${{REGISTRY}}{reference.removeprefix(around.root)}"
    return reference
