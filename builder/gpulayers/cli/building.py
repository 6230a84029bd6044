"""`gpulayers build`: the main job."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from gpulayers import bases, doctor, logs, needs
from gpulayers.build import Builder, NothingToBuild
from gpulayers.cli import assemblies, job, weights
from gpulayers.cli import loaded as project_files
from gpulayers.cli.job import Settings
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.locking import machine_inputs
from gpulayers.cli.locking import make as make_lock
from gpulayers.cli.options import where, where_options
from gpulayers.cli.progress import Progress, console
from gpulayers.cli.pulled import let_go
from gpulayers.cli.summary import print_summary
from gpulayers.cli.working import alone
from gpulayers.engine.buildx import Buildx
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.engine.space import SpaceWatch, free_bytes
from gpulayers.errors import RemoteError, StaleError, ToolError
from gpulayers.inputs import given as secrets
from gpulayers.inputs.given import Given
from gpulayers.layer import stack
from gpulayers.lock import file as lock_file
from gpulayers.lock.make import refresh_models
from gpulayers.lock.model import Lock
from gpulayers.matrix import apps
from gpulayers.plan.model import Image, Plan
from gpulayers.record import Report, format_report, write
from gpulayers.refs import ImageRef
from gpulayers.scan.scanner import Scanner

REPORT = "report.json"
LOOPBACK = ("127.", "localhost", "[::1]")


@click.command("build", short_help="Build, check, push and tag the images: the main job.")
@where_options
@click.option("--shard", default="", metavar="I/N", help="Only the I-th of N parts (from 1).")
@click.option("--fail-fast", is_flag=True, help="Stop all the others at the first failure.")
@click.option("--locked", is_flag=True, help="Refuse a lock that does not fit.")
@job.making_options
def build_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    given: tuple[Given, ...],
    **options: object,
) -> None:
    """Build the images of the matrix: check, plan, build, gate, push and tag them."""
    settings = job.settings(options, given)
    found = project_files.load(where(project, matrix, only, registry), for_build=True)
    found.demand_cells()
    _demand_secrets(found, settings)
    with alone(found.project.state, "build", wait=not options["no_wait"]):
        report = run(found, settings)
    print_summary(report, found, moved=settings.push)
    sys.exit(report.exit_code)


def _keep(report: Report, found: Loaded, settings: Settings) -> Report:
    document = format_report(report)
    write(found.project.state / REPORT, document)
    if settings.report is not None:
        write(settings.report, document)
    return report


def run(found: Loaded, settings: Settings) -> Report:
    """The main job, from a project without problems to a report.

    Raises: GpulayersError: before anything was built, something needed is missing.
    """
    from gpulayers.engine import buildx as builders

    _demand_place(found, settings)
    locked = _fitting_lock(found, settings)
    with Registry() as registry:
        plan = job.planned(found, locked, settings) if locked is not None else None
        report, missing = _standing(found, plan, settings, registry)
        if report is not None:
            return _keep(report, found, settings)
        engine, machine = DockerEngine(), _machine(found, registry)
        needs.demand_tools(machine, [image.tag for image in missing])
        engine.remove_orphans()
        scanner = Scanner.open(found.project.state / "trivy")
        lock = locked or make_lock(found, settings.builder)
        buildx = builders.find(settings.builder)
        _demand_bases(found, lock, registry, buildx)
        nearer = bases.nearest_copies(lock, found.root, registry)
        # What people get to read and build by hand says where bases came from.
        rendered = plan or job.planned(found, lock, settings)
        plan = rendered if nearer is lock else job.planned(found, nearer, settings)
        disk = doctor.data_folder(machine)
        space = SpaceWatch(partial(free_bytes, disk)) if disk is not None else None
        builder = replace(_builder(found, lock, buildx, rendered, settings.given), space=space)
        keeper = job.keeper(found, engine, scanner)
        assembly = assemblies.make(found, builder, engine, registry)
        versions = {"docker": engine.info().version, "buildx": engine.buildx_version()}
        progress = Progress(plan=plan, quiet=settings.quiet, console=console(quiet=settings.quiet))
        run_ = job.make(
            found,
            settings,
            plan=plan,
            builder=builder,
            keeper=keeper,
            registry=registry,
            progress=progress,
            versions=versions,
            assembly=assembly,
        )
        there = run_.there()
        missing = [image for image in plan.images if image.key not in there]
        held = assembly.held(missing)
        _demand_space(missing, held, machine)
        lack_weights = [image for image in missing if not _has_weights(image, held)]
        run_.missing = weights.hand_over(found, lock, lack_weights, registry)
        with let_go(found.repository(), engine):
            with progress:
                report = run_.go(there)
            return _keep(report, found, settings)


def _standing(
    found: Loaded, plan: Plan | None, settings: Settings, registry: Registry
) -> tuple[Report | None, Sequence[Image]]:
    """The report of a run that has nothing to build or to judge, for which no engine is asked.

    Shape: else None and the images that there is something to do for, as far as that is known.
    """
    if plan is None:
        return None, ()
    progress = Progress(plan=plan, quiet=settings.quiet, console=console(quiet=settings.quiet))
    run_ = job.make(
        found,
        settings,
        plan=plan,
        builder=NothingToBuild(root=found.root, name=found.matrix.images.name),
        keeper=job.keeper(found, DockerEngine(), None),
        registry=registry,
        progress=progress,
        versions={},
    )
    try:
        there = run_.there()
    except RemoteError:
        return None, ()  # told where it is asked again
    missing = run_.unfinished(there)
    if missing:
        return None, missing
    with progress:
        return run_.go(there), ()


def _machine(found: Loaded, registry: Registry) -> doctor.Machine:
    return doctor.Machine(
        registry=registry,
        root=found.root,
        name=found.matrix.images.name,
        disk=found.project.root,
        trivy_state=found.project.state / "trivy",
    )


def _has_weights(image: Image, held: Collection[str]) -> bool:
    """Whether the files of an image's model are not needed: the registry has their steps."""
    own = [step for step in image.steps if step.name.startswith(f"model-{image.cell.model}")]
    return bool(own) and all(step.key in held for step in own)


def _demand_space(images: Sequence[Image], held: Collection[str], machine: doctor.Machine) -> None:
    place = doctor.data_folder(machine)
    said = needs.demand_space(needs.space(images, held), place) if place is not None else ""
    if said:
        click.echo(said, err=True)


def _demand_place(found: Loaded, settings: Settings) -> None:
    if not settings.push and not found.root.startswith(LOOPBACK):
        msg = f"--no-push builds into a registry of this machine, found {found.root}"
        raise ToolError(msg, hint="add --registry 127.0.0.1:PORT/PATH (`make up` starts one)")


def _demand_secrets(found: Loaded, settings: Settings) -> None:
    """Refuse to start without a secret that a layer of the selected images asks for."""
    library = found.library
    layers = [library.single(kind) for kind in ("base", "tools", "model")]
    if any(apps.of(found.matrix, cell) for cell in found.cells):
        layers += [library.single(kind) for kind in ("devel", "app")]
    frameworks = {cell.framework.name for cell in found.cells}
    layers += [layer for name in sorted(frameworks) for layer in stack(library, name)]
    asked = {layer.name: layer.secrets for layer in layers if layer.secrets}
    for name in secrets.demand(asked, settings.given):
        click.echo(f"warning: no layer asks for the secret {name}", err=True)


def _fitting_lock(found: Loaded, settings: Settings) -> Lock | None:
    """The lock when it fits, its models as they are now; None: it is to be made anew."""
    if settings.locked:
        return project_files.fitting_lock(found)
    lock = project_files.read_lock(found)
    changed: Sequence[str] = () if lock is None else project_files.differences(found, lock)
    for line in changed if lock is not None else ("there is none",):
        click.echo(f"lock: {line}", err=True)
    if lock is None or not changed:
        return lock
    if all(line.startswith("model ") for line in changed):
        lock = refresh_models(found.matrix, lock)
        lock_file.write(found.lock_path, lock)
        return lock
    return None


def _demand_bases(found: Loaded, lock: Lock, registry: Registry, buildx: Buildx) -> None:
    """See that our own bases are in the registry, and make those again that are not."""
    for base in lock.bases:
        ref = ImageRef.parse(bases.reference(base, found.root))
        if base.repository or registry.resolve(ref) is not None:
            continue
        click.echo(f"base {base.os}: making it again, the registry lacks it", err=True)
        into = f"{found.root}/base:{base.os}"
        digest = bases.bootstrap(base.suite, base.platform, buildx=buildx, into=into)
        if digest != base.digest:
            msg = (
                f"base {base.os}: the lock has {base.digest}, {base.source} gives {digest} today: "
                "the archive has moved on"
            )
            raise StaleError(msg, hint="run: gpulayers lock")


def _builder(
    found: Loaded, lock: Lock, buildx: Buildx, plan: Plan, given: tuple[Given, ...]
) -> Builder:
    from gpulayers.render import files

    rendered = found.project.state / "render"
    files.write(rendered, files.render(plan, found.library, found.around))
    return Builder(
        buildx=buildx,
        rendered=rendered,
        project=found.project.root,
        root=found.root,
        name=found.matrix.images.name,
        inputs=machine_inputs(found, {base.os: base.suite for base in lock.bases}, lock.indexes),
        logs=found.project.state / logs.FOLDER,
        given=given,
    )
