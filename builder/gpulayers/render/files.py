"""All rendered files, and writing them whole."""

from collections.abc import Mapping
from pathlib import Path

from gpulayers import documents
from gpulayers.layer import Library
from gpulayers.plan.model import Plan
from gpulayers.render import bake, dockerfile
from gpulayers.render.bake import Surroundings
from gpulayers.render.dockerfile import BANNER

BAKE_FILE = "docker-bake.json"


def render(plan: Plan, library: Library, around: Surroundings) -> Mapping[str, str]:
    """File name to text, for every image and the bake file: the same plan, the same bytes.

    Raises: ProjectError: a layer's template does not render.
    """
    templates = dockerfile.environment(library)
    files = {
        f"images/{image.target}.Dockerfile": dockerfile.text(image, templates)
        for image in plan.images
    }
    return {**files, BAKE_FILE: bake.text(plan, around)}


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Put the files there; Dockerfiles of images that are no longer made go away."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for stale in images.glob("*.Dockerfile"):
        # Only what we wrote: somebody else's Dockerfile in that folder is theirs.
        if f"images/{stale.name}" not in files and _is_ours(stale):
            stale.unlink()
    for name, content in files.items():
        documents.write(folder / name, content)


def differences(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Names of files that are missing, differ, or are too many, sorted."""
    there = {f"images/{path.name}" for path in (folder / "images").glob("*.Dockerfile")}
    there |= {BAKE_FILE} if (folder / BAKE_FILE).is_file() else set()
    changed = {
        name
        for name, content in files.items()
        if name in there and (folder / name).read_text(encoding="utf-8") != content
    }
    return tuple(sorted((there ^ files.keys()) | changed))


def _is_ours(path: Path) -> bool:
    start = BANNER.partition("\n")[0]
    return path.read_text(encoding="utf-8", errors="replace").startswith(start)
