"""What a build will need of a machine, and whether it is there, before anything starts."""

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers import doctor
from gpulayers.errors import ToolError
from gpulayers.plan.model import Image, Step

GB = 10**9
# Measured on the demo's 12 images: 2.9 GB of wheels left 20 GB of build cache (stages, linked
# copies, blobs), and their images, pulled for the smoke tests, 2.4 times their compressed size.
BUILD_FACTOR = 7.0
UNPACKED_FACTOR = 2.4
# Below this much of the downloads nothing can go well.
LEAST_FACTOR = 3.0
TOOLS = ("engine", "buildx")
SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Disk that a build takes at its peak.

    Units: bytes; ``download_bytes`` are those of the steps that are not built yet.
    """

    download_bytes: int
    peak_bytes: int


def space(images: Collection[Image], held: Collection[str] = ()) -> Space:
    """What these images take where nothing of them is cached: every unique step counts once.

    Shape: ``held`` are the keys of steps that are not built, since the registry has them.
    """
    steps: dict[str, Step] = {step.stage: step for image in images for step in image.steps}
    download = sum(step.size_bytes for step in steps.values() if step.key not in held)
    stacks: dict[tuple[str, ...], int] = {}
    for image in images:
        below: tuple[str, ...] = (image.base,)
        for step in image.steps:
            # An engine unpacks a layer once for each stack that it lies upon.
            below = (*below, step.stage)
            stacks[below] = step.size_bytes
    unpacked = sum(stacks.values())
    peak = int(download * BUILD_FACTOR + unpacked * UNPACKED_FACTOR)
    return Space(download_bytes=download, peak_bytes=peak)


def demand_tools(machine: doctor.Machine, tags: Sequence[str] = ()) -> None:
    """Refuse a machine whose tools are missing or too old, naming all of them.

    Shape: ``tags`` are the images that they are needed for, as far as that is known.
    Raises: ToolError: what is wrong, with what was found and wanted.
    """
    parts = [part for part in doctor.examine_tools(machine) if part.status == "failed"]
    if parts:
        lines = [f"  {part.name}: wanted {part.wanted}, found {part.found}" for part in parts]
        more = f" and {len(tags) - SHOWN} more" if len(tags) > SHOWN else ""
        what = f"this machine cannot build {', '.join(tags[:SHOWN])}{more}".rstrip()
        msg = "\n".join([f"{what}:", *lines])
        raise ToolError(msg, hint="; ".join(dict.fromkeys(part.fix for part in parts)))


def demand_space(need: Space, place: Path) -> str:
    """Refuse a disk on which the build cannot end; what to say of one on which it may not.

    Shape: "" when there is enough, or the place is not on this machine.
    Raises: ToolError: far too little is free.
    """
    if not place.is_dir() or not need.download_bytes:
        return ""
    free = shutil.disk_usage(place).free
    wanted = f"about {need.peak_bytes / GB:.0f} GB at the peak"
    if free < need.download_bytes * LEAST_FACTOR:
        msg = f"too little disk: wanted {wanted}, found {free / GB:.0f} GB free in {place}"
        raise ToolError(
            msg, hint="gpulayers prune, a larger disk, or fewer images (--only, --shard)"
        )
    if free < need.peak_bytes:
        return f"disk: this build takes {wanted}, {free / GB:.0f} GB are free in {place}"
    return ""
