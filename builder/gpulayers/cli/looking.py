"""Commands that only look: check, list, plan, render. No Docker, no network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from gpulayers.cli import loaded as project_files
from gpulayers.cli.options import where, where_options
from gpulayers.cli.progress import megabytes
from gpulayers.errors import StaleError
from gpulayers.matrix import tags
from gpulayers.matrix.model import Cell
from gpulayers.plan.model import Plan

RENDERED = "render"


@click.command("check", short_help="Name every problem in the project's files at once.")
@where_options
@click.option("--strict", is_flag=True, help="Refuse a missing or unfitting lock too.")
def check_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    strict: bool,
) -> None:
    """Name every problem in the project's files at once; asks no network."""
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    if strict:
        project_files.fitting_lock(found)
    kept, excluded = len(found.cells), len(found.selection.excluded)
    click.echo(f"{kept} cells kept, {excluded} excluded; no problems")


@click.command("list", short_help="Show the cells: kept and excluded.")
@where_options
@click.option("--why", is_flag=True, help="Say what keeps a cell out.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def list_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    why: bool,
    as_json: bool,
) -> None:
    """Show the cells: kept, with their tags, and excluded, with our reasons.

    With --why each kept cell has what the facts say of it, and of it on each host of the fleet.
    """
    found = project_files.load(where(project, matrix, only, registry))
    if not found.selection.excluded:
        found.demand_cells()
    if as_json:
        click.echo(json.dumps(_list_document(found, why=why), indent=2))
        return
    said = _said(found) if why else {}
    for cell in found.cells:
        click.echo(f"kept      {tags.tag(found.matrix, cell)}")
        for line in said.get(cell, ()):
            click.echo(line)
    for cell, exclude in found.selection.excluded:
        reason = f": {exclude.reason} (matrix.toml:{exclude.line})" if why else ""
        click.echo(f"excluded  {cell.format()}{reason}")
    click.echo(f"{len(found.cells)} kept, {len(found.selection.excluded)} excluded")


def _said(found: project_files.Loaded) -> Mapping[Cell, Sequence[str]]:
    """What the facts say of kept cells; only where it is asked for are they read."""
    from gpulayers.cli import list_lines

    return list_lines.kept(found.matrix, found.cells)


def _list_document(found: project_files.Loaded, *, why: bool) -> dict[str, object]:
    said: Mapping[Cell, Mapping[str, object]] = {}
    if why:
        from gpulayers.cli import list_lines

        said = list_lines.documents(found.matrix, found.cells)
    return {
        "kept": [
            {"tag": tags.tag(found.matrix, c), "cell": c.values(), **said.get(c, {})}
            for c in found.cells
        ],
        "excluded": [
            {"cell": cell.values(), "reason": exclude.reason, "line": exclude.line}
            for cell, exclude in found.selection.excluded
        ],
    }


@click.command("plan", short_help="Show steps and images, and what would be built.")
@where_options
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def plan_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    as_json: bool,
) -> None:
    """Show the unique steps and the images made of them, from the lock; asks nothing and nobody."""
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    plan = found.plan(project_files.fitting_lock(found))
    if as_json:
        click.echo(json.dumps(_plan_document(plan), indent=2))
        return
    for step in plan.steps:
        used = sum(step in image.steps for image in plan.images)
        size = megabytes(step.size_bytes) if step.size_bytes else "size unknown"
        click.echo(f"step   {step.key[:12]}  {step.name}  ({size}, in {used} images)")
    for image in plan.images:
        click.echo(f"image  {image.key12}  {image.tag}  ({len(image.steps)} steps)")
    known = sum(step.size_bytes for step in plan.steps)
    total = sum(step.size_bytes for image in plan.images for step in image.steps)
    click.echo(
        f"{len(plan.images)} images, {len(plan.steps)} unique steps; downloads of the steps "
        f"{megabytes(known)}, counted once an image {megabytes(total)}"
    )


def _plan_document(plan: Plan) -> dict[str, object]:
    return {
        "steps": [
            {
                "name": step.name,
                "layer": step.layer,
                "stage": step.stage,
                "key": step.key,
                "bytes": step.size_bytes,
                "images": [image.tag for image in plan.images if step in image.steps],
            }
            for step in plan.steps
        ],
        "images": [
            {
                "tag": image.tag,
                "cell": image.cell.values(),
                "platform": image.platform.format(),
                "key": image.key,
                "target": image.target,
                "base": image.base,
                "steps": [step.stage for step in image.steps],
            }
            for image in plan.images
        ],
    }


@click.command("render", short_help="Write Dockerfiles and docker-bake.json.")
@where_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to (default: .gpulayers/render).",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 13 when the files differ.")
def render_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    out: Path | None,
    check: bool,
) -> None:
    """Write plain Dockerfiles and a plain docker-bake.json that build without us."""
    from gpulayers.render import files

    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    plan = found.plan(project_files.fitting_lock(found))
    folder = out or found.project.state / RENDERED
    rendered = files.render(plan, found.library, found.around)
    if check:
        changed = files.differences(folder, rendered)
        if changed:
            msg = f"{len(changed)} rendered files differ: {', '.join(changed)}"
            raise StaleError(msg, hint="run: gpulayers render")
        click.echo(f"{len(rendered)} files are as they should be")
        return
    files.write(folder, rendered)
    click.echo(f"{len(rendered)} files in {folder}")
