"""`gpulayers lock`: resolve everything once, or say what does not fit."""

import tempfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from gpulayers import inputs
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.options import secret_option, where, where_options
from gpulayers.cli.working import alone, wait_option
from gpulayers.errors import StaleError
from gpulayers.inputs import Inputs
from gpulayers.inputs.given import Given
from gpulayers.lock import file as lock_file
from gpulayers.lock import make as lock_make
from gpulayers.lock import moved, wheels
from gpulayers.lock import update as updating
from gpulayers.lock.model import Lock
from gpulayers.lock.weights.store import megabytes
from gpulayers.plan import sorting

# The end of a tag that a base has which was made to be compared only.
CHECKED = "-checked"


@click.command("lock", short_help="Resolve everything to digests and hashes.")
@where_options
@click.option("--check", is_flag=True, help="Write nothing; exit 13 and say what moved.")
@click.option("--update", is_flag=True, help="Move only what NAMES say; without any, everything.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--builder", default="", help="The buildx builder to use.")
@wait_option
@secret_option
def lock_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    check: bool,
    update: bool,
    names: tuple[str, ...],
    builder: str,
    no_wait: bool,
    given: tuple[Given, ...],  # noqa: ARG001 - from here on their values are hidden
) -> None:
    """Resolve bases, OS packages and wheels to digests and hashes, in matrix.lock.toml.

    The lock is for all kept cells, whatever --only says. A NAME after --update is a wheel, an OS
    (which moves its base and packages), a model, a Python or uv: all else stays as it is locked.
    """
    if check and (update or names):
        msg = "--check writes nothing: take either it, or --update with names"
        raise click.UsageError(msg)
    if names and not update:
        msg = f"{' '.join(names)}: wanted --update before names of what may move"
        raise click.UsageError(msg)
    found = project_files.load(where(project, matrix, only, registry))
    if check:
        _check(found, builder, wait=not no_wait)
        return
    for line in sorting.warnings(found.judging, found.whole):
        click.echo(f"warning: {line}", err=True)
    with alone(found.project.state, "lock", wait=not no_wait):
        lock = _updated(found, builder, names) if names else make(found, builder)
    click.echo(
        f"{found.lock_path.name}: {len(lock.bases)} bases, {len(lock.wheels)} wheels, "
        f"{sum(len(entry.packages) for entry in lock.packages)} OS packages"
    )
    for entry in (entry for entry in lock.models if entry.source):
        click.echo(
            f"  model {entry.name}: {len(entry.files)} files, {megabytes(entry.size_bytes)}, "
            f"{entry.source} at {entry.revision}"
        )


def _check(found: Loaded, builder: str, *, wait: bool) -> None:
    """Say whether the lock fits the project, and whether it is what would be locked now.

    Raises: StaleError: it does not, or is not; names each thing that moved.
    """
    name, lock = found.lock_path.name, fitting(found)
    with alone(found.project.state, "lock", wait=wait):
        now = resolve(found, builder, suffix=CHECKED)
    lines = moved.differences(lock, now)
    if not lines and lock_file.format_lock(now) != lock_file.format_lock(lock):
        lines = ("sizes or settings of entries whose versions and hashes are the same",)
    if lines:
        count = f"{len(lines)} {'things' if len(lines) > 1 else 'thing'}"
        msg = f"{name} fits the project, but {count} moved since:\n"
        hint = "to take all of it: gpulayers lock; builds go on with what is locked"
        raise StaleError(msg + "\n".join(f"  {line}" for line in lines), hint=hint)
    click.echo(f"{name} fits, and nothing moved since")


def fitting(found: Loaded) -> Lock:
    """The lock, to be compared with what it would be now.

    Raises: StaleError: there is none, or it does not fit.
    """
    lock = lock_file.read(found.lock_path)
    changed = ("there is none",) if lock is None else project_files.differences(found, lock)
    if lock is None or changed:
        msg = f"{found.lock_path.name} does not fit: {'; '.join(changed)}"
        raise StaleError(msg, hint="run: gpulayers lock")
    return lock


def _updated(found: Loaded, builder: str, names: tuple[str, ...]) -> Lock:
    """Move what these names say, and write the lock if that moved anything."""
    old = fitting(found)
    lock = resolve(found, builder, keep=updating.keeping(old, names))
    for line in moved.differences(old, lock) or (
        f"{' '.join(names)}: nothing newer fits what stays",
    ):
        click.echo(line)
    lock_file.write(found.lock_path, lock)
    return lock


def make(found: Loaded, builder: str) -> Lock:
    """Make the lock and write it.

    Raises: RemoteError: something did not answer; ProjectError: something does not exist.
    """
    lock = resolve(found, builder)
    lock_file.write(found.lock_path, lock)
    return lock


def resolve(
    found: Loaded,
    builder: str,
    *,
    suffix: str = "",
    keep: updating.Keeping | None = None,
) -> Lock:
    """Make the lock, as far as things are today.

    Shape: ``suffix`` as in ``bases.Workshop``; ``keep`` has what stays.
    Raises: RemoteError: something did not answer; ProjectError: something does not exist.
    """
    from gpulayers.bases import Workshop
    from gpulayers.engine import buildx
    from gpulayers.engine.registry import Registry
    from gpulayers.lock.weights import sources as weights
    from gpulayers.lock.weights.store import Store

    found.demand_cells()
    with ExitStack() as stack:
        registry = stack.enter_context(Registry())
        # What an index said minutes ago, uv would believe: a lock and a check of it must agree.
        cache = stack.enter_context(tempfile.TemporaryDirectory(prefix="gpulayers-"))
        workshop = Workshop(
            registry=registry,
            buildx=buildx.find(builder),
            root=found.root,
            say=lambda line: click.echo(f"lock: {line}", err=True),
            suffix=suffix,
        )
        sources = lock_make.Sources(
            workshop=workshop,
            inputs=lambda suites: machine_inputs(found, suites, found.indexes),
            resolve=partial(wheels.resolve, cache=Path(cache)),
            pin=weights.sources(Store(folder=found.models), registry).pin,
        )
        return lock_make.make(found.matrix, found.wanted, sources, keep)


def machine_inputs(found: Loaded, suites: Mapping[str, str], indexes: Collection[str]) -> Inputs:
    """The machine's settings, in the project's state folder.

    Raises: ProjectError: they have no index of one of these names.
    """
    folder = found.project.state / "inputs"
    environment = inputs.machine_environment()
    return inputs.prepare(
        folder, suites, environment, indexes=indexes, say=lambda line: click.echo(line, err=True)
    )
