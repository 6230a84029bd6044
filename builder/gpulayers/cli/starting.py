"""`gpulayers init`: a project that builds at once."""

from pathlib import Path

import click

from gpulayers import starter
from gpulayers.cli.loaded import Where, load
from gpulayers.errors import GpulayersError, ProjectError
from gpulayers.versions import MajorMinor, Pin


@click.command("init", short_help="Start a project that builds at once.")
@click.argument(
    "folder",
    metavar="[DIR]",
    default=Path(),
    type=click.Path(file_okay=True, path_type=Path),
)
@click.option(
    "--registry",
    default="127.0.0.1:5000/images",
    show_default=True,
    metavar="HOST/PATH",
    help="Where its images go.",
)
@click.option("--framework", default="cupy==13.6.0", show_default=True, metavar="NAME==VERSION")
@click.option("--cuda", default="12.8", show_default=True, metavar="MAJOR.MINOR")
@click.option("--python", default="3.11", show_default=True, metavar="MAJOR.MINOR")
@click.option("--lock/--no-lock", default=True, help="Lock it too, which asks the network.")
def init_command(
    folder: Path, *, registry: str, framework: str, cuda: str, python: str, lock: bool
) -> None:
    """Write a project into a folder (default: this one) and lock it; nothing is overwritten."""
    choice = starter.Choice(
        registry=registry.rstrip("/"),
        framework=Pin.parse(framework),
        cuda=MajorMinor.parse(cuda),
        python=MajorMinor.parse(python),
    )
    texts = starter.files(choice)
    starter.write(folder.absolute(), texts, _check)
    for name in texts:
        click.echo(folder / name)
    start = "" if folder == Path() else f"cd {folder} && "
    locked = lock and _lock(folder.absolute())
    first = "" if locked else "gpulayers lock && "
    click.echo(f"next: {start}{first}gpulayers build --matrix", err=True)


def _lock(folder: Path) -> bool:
    """Make the first lock; a machine that cannot (no engine, no network) has its project still."""
    from gpulayers.cli import locking

    try:
        locking.make(load(Where(project=folder, matrix=None, only=(), registry="")), "")
    except GpulayersError as error:
        click.echo(f"not locked: {error}", err=True)
        return False
    return True


def _check(scratch: Path) -> None:
    try:
        load(Where(project=scratch, matrix=None, only=(), registry="")).demand_cells()
    except ProjectError as error:
        msg = "these choices make no project"
        raise ProjectError(msg, problems=error.problems, hint="correct the options") from error
