"""`gpulayers lock`: resolve everything once, or say what does not fit."""

from collections.abc import Collection, Mapping
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
from gpulayers.lock.model import Lock
from gpulayers.lock.weights.store import megabytes
from gpulayers.plan import sorting


@click.command("lock", short_help="Resolve everything to digests and hashes.")
@where_options
@click.option("--check", is_flag=True, help="Change nothing; exit 13 when the lock does not fit.")
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
    builder: str,
    no_wait: bool,
    given: tuple[Given, ...],  # noqa: ARG001 - from here on their values are hidden
) -> None:
    """Resolve bases, OS packages and wheels to digests and hashes, in matrix.lock.toml.

    The lock is for all kept cells, whatever --only says.
    """
    found = project_files.load(where(project, matrix, only, registry))
    if check:
        lock = lock_file.read(found.lock_path)
        changed = ("there is none",) if lock is None else project_files.differences(found, lock)
        if changed:
            msg = f"{found.lock_path.name} does not fit: {'; '.join(changed)}"
            raise StaleError(msg, hint="run: gpulayers lock")
        click.echo(f"{found.lock_path.name} fits")
        return
    for line in sorting.warnings(found.judging, found.whole):
        click.echo(f"warning: {line}", err=True)
    with alone(found.project.state, "lock", wait=not no_wait):
        lock = make(found, builder)
    click.echo(
        f"{found.lock_path.name}: {len(lock.bases)} bases, {len(lock.wheels)} wheels, "
        f"{sum(len(entry.packages) for entry in lock.packages)} OS packages"
    )
    for entry in (entry for entry in lock.models if entry.source):
        click.echo(
            f"  model {entry.name}: {len(entry.files)} files, {megabytes(entry.size_bytes)}, "
            f"{entry.source} at {entry.revision}"
        )


def make(found: Loaded, builder: str) -> Lock:
    """Make the lock and write it.

    Raises: RemoteError: something did not answer; ProjectError: something does not exist.
    """
    from gpulayers.bases import Workshop
    from gpulayers.engine import buildx
    from gpulayers.engine.registry import Registry
    from gpulayers.lock.weights import sources as weights
    from gpulayers.lock.weights.store import Store

    found.demand_cells()
    with Registry() as registry:
        workshop = Workshop(
            registry=registry,
            buildx=buildx.find(builder),
            root=found.root,
            say=lambda line: click.echo(f"lock: {line}", err=True),
        )
        sources = lock_make.Sources(
            workshop=workshop,
            inputs=lambda suites: machine_inputs(found, suites, found.indexes),
            pin=weights.sources(Store(folder=found.models), registry).pin,
        )
        lock = lock_make.make(found.matrix, found.wanted, sources)
    lock_file.write(found.lock_path, lock)
    return lock


def machine_inputs(found: Loaded, suites: Mapping[str, str], indexes: Collection[str]) -> Inputs:
    """The machine's settings, in the project's state folder.

    Raises: ProjectError: they have no index of one of these names.
    """
    folder = found.project.state / "inputs"
    return inputs.prepare(folder, suites, inputs.machine_environment(), indexes=indexes)
