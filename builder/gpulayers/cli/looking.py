"""Commands that only look: check, list, plan, render. No Docker, no network."""

import json
from pathlib import Path

import click

from gpulayers.cli import list_lines
from gpulayers.cli import loaded as project_files
from gpulayers.cli.options import where, where_options
from gpulayers.cli.progress import megabytes
from gpulayers.errors import ProjectError, StaleError
from gpulayers.plan import sorting
from gpulayers.plan.model import Plan
from gpulayers.plan.sorting import Sorting

RENDERED = "render"


@click.command("check", short_help="Name every problem in the project's files at once.")
@where_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a lock that is missing or does not fit, and cells not known to work.",
)
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
    for line in sorting.warnings(found.judging, found.sorting):
        click.echo(f"warning: {line}", err=True)
    open_cells = sorting.unknown(found.judging, found.sorting) if strict else ()
    if open_cells:
        msg = f"{len(open_cells)} kept cells are not known to work, and --strict refuses that"
        raise ProjectError(msg, hint="gpulayers list --why shows each verdict")
    if strict:
        project_files.fitting_lock(found)
    click.echo(f"{_counts(found.sorting, cells=True)}; no problems")


def _counts(found: Sorting, *, cells: bool = False) -> str:
    of = ("cell " if len(found.kept) == 1 else "cells ") if cells else ""
    out = f"{len(found.impossible)} impossible, {len(found.excluded)} excluded"
    return f"{len(found.kept)} {of}kept, {out}"


@click.command("list", short_help="Show the cells: kept, impossible and excluded.")
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
    """Show the cells: kept, with their tags, impossible, by facts, and excluded, by our choice.

    With --why each has its reason, and a kept one what the facts say of it on each host of the
    fleet; impossible ones of one reason stand together, with the nearest that would work.
    """
    found = project_files.load(where(project, matrix, only, registry))
    if not found.sorting.excluded and not found.sorting.impossible and not found.cells:
        found.demand_cells()
    if as_json:
        click.echo(list_lines.as_json(found, why=why))
        return
    for line in list_lines.lines(found, why=why):
        click.echo(line)
    click.echo(_counts(found.sorting))


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
