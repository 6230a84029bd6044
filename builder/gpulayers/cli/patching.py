"""`gpulayers patch`: the OS updates of the whole fleet, and nothing else."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from gpulayers import catalog, patching
from gpulayers.cli import building, job
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.locking import CHECKED, fitting, resolve
from gpulayers.cli.options import where, where_options
from gpulayers.cli.summary import print_summary
from gpulayers.cli.working import alone
from gpulayers.errors import ProjectError
from gpulayers.inputs.given import Given
from gpulayers.lock import file as lock_file
from gpulayers.lock import moved
from gpulayers.lock import update as updating
from gpulayers.lock.model import Lock
from gpulayers.lock.wanted import TOOLS
from gpulayers.matrix.shape import nearest
from gpulayers.record import ImageRecord, Report

SHOWN = 20


@click.command("patch", short_help="Take the OS updates of the whole fleet, and nothing else.")
@where_options
@click.argument("oses", nargs=-1, metavar="[OS]...")
@click.option("--dry-run", is_flag=True, help="Say what would move; change nothing.")
@job.making_options
def patch_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    oses: tuple[str, ...],
    dry_run: bool,
    given: tuple[Given, ...],
    **options: object,
) -> None:
    """Move bases and OS packages to what is there today, and the images onto them.

    All other layers stay as they are: images are put together out of them, without a builder. The
    lock moves for all images on these OSes, whatever --only says. Without an OS: all of them.
    """
    settings = replace(job.settings(options, given), locked=True)
    found = project_files.load(where(project, matrix, only, registry), for_build=True)
    found.demand_cells()
    with alone(found.project.state, "patch", wait=not options["no_wait"]):
        old = fitting(found)
        names = _names(old, oses)
        keep = updating.keeping(old, names)
        suffix = CHECKED if dry_run else ""
        new = resolve(found, settings.builder, keep=keep, suffix=suffix)
        lines = moved.differences(old, new)
        for line in lines:
            click.echo(line)
        if not lines or dry_run:
            count = f"{len(lines)} to move" if lines else "nothing to patch"
            click.echo(f"{' '.join(names)}: {count}")
            return
        before = catalog.read(found.project.state).last
        lock_file.write(found.lock_path, new)
        report = building.run(found, settings)
    print_summary(report, found, moved=settings.push)
    for line in closed(before, report, found):
        click.echo(line)
    sys.exit(report.exit_code)


def _names(lock: Lock, oses: Sequence[str]) -> tuple[str, ...]:
    """The OSes to patch.

    Raises: ProjectError: one has no base in the lock.
    """
    known = sorted({base.os for base in lock.bases} - {TOOLS})
    wrong = [f"  {name}: {nearest(name, known)}" for name in oses if name not in known]
    if wrong:
        msg = "the lock has no such bases:\n" + "\n".join(wrong)
        raise ProjectError(msg, hint=f"wanted: some of {' '.join(known)}, or none for all of them")
    return tuple(oses) or tuple(known)


def closed(before: Sequence[ImageRecord], report: Report, found: Loaded) -> list[str]:
    """Which vulnerabilities are gone, as far as there are scans to tell."""
    compared = patching.compare(before, report.images, found.project.state / "scans")
    lines = [f"closes {one.format()}" for one in compared.closed[:SHOWN]]
    more = len(compared.closed) - SHOWN
    lines += [f"and {more} more"] if more > 0 else []
    if compared.unknown:
        count = f"{len(compared.unknown)} of {len(report.images)} images"
        lines.append(f"what it closes is not known of {count}: no two scans of them to compare")
    elif not compared.closed:
        lines.append("closes nothing that the scans before had found")
    return lines
