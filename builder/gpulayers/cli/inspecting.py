"""`gpulayers inspect`: what is inside an image."""

import json
import platform as machine
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from gpulayers import catalog, inspection
from gpulayers.cli import loaded as project_files
from gpulayers.cli.handy import image_options
from gpulayers.cli.loaded import Where
from gpulayers.cli.named import Named, image_of, project_of
from gpulayers.cli.options import where
from gpulayers.cli.progress import console, megabytes
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.errors import GpulayersError, ProjectError, RemoteError
from gpulayers.inspection import CAP_BYTES, Inspected, Subject
from gpulayers.project import find

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@click.command("inspect", short_help="Show what is inside an image.")
@image_options
@click.option("--platform", default="", metavar="OS/ARCH", help="Of an index (default: ours).")
@click.option("--deep", is_flag=True, help="Read layers of more than 64 MB too.")
@click.option("--quick", is_flag=True, help="Read no layer: config, labels and records only.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@click.argument("image", metavar="REF|CELL")
def inspect_command(
    project: Path | None,
    matrix: str | None,
    registry: str,
    *,
    platform: str,
    deep: bool,
    quick: bool,
    as_json: bool,
    image: str,
) -> None:
    """Show what is inside an image, ours or anyone's, without a container of it.

    Layers by who brought them, Python packages, CUDA libraries, environment and labels.
    """
    if deep and quick:
        msg = "--deep and --quick exclude each other"
        raise click.UsageError(msg)
    place = where(project, matrix, (), registry)
    wanted = platform or f"linux/{ARCHITECTURES.get(machine.machine(), 'amd64')}"
    cap = 0 if quick else None if deep else CAP_BYTES
    with Registry() as client, opened(image, place, client, wanted) as (named, subject):
        talk = console(quiet=as_json)
        found = inspection.examine(
            subject,
            steps=_steps(named, subject, place),
            sbom=_sbom(subject.digest, place),
            cap_bytes=cap,
            on_layer=lambda layer: talk.print(
                f"reading {megabytes(layer.size_bytes)} {layer.owner}", markup=False
            ),
        )
    if as_json:
        click.echo(json.dumps(inspection.format_json(found), indent=2, ensure_ascii=False))
    else:
        _show(found)


@contextmanager
def opened(
    text: str, place: Where, client: Registry, platform: str
) -> Iterator[tuple[Named, Subject]]:
    """An image by its name or a cell: of its registry, else the engine's own copy.

    Raises: RemoteError: neither has it.
    """
    engine = DockerEngine()
    named = image_of(text, place, client, engine)
    local = text if named.local else ""
    if not local:
        try:
            subject = inspection.of_registry(client, named.ref, platform)
        except RemoteError as error:
            # What the engine holds of it by digest is the same image.
            local = named.runnable if engine.image_id(named.runnable) else ""
            if not local:
                raise
            click.echo(f"{error}; taking the engine's own copy", err=True)
        else:
            yield named, subject
            return
    with inspection.of_engine(engine, local) as subject:
        yield named, subject


def _steps(named: Named, subject: Subject, place: Where) -> tuple[str, ...]:
    """Names of the layers, from the lowest: of the record, else of a plan with the same key."""
    if named.record is not None and named.record.digest == subject.digest:
        return tuple(layer.step for layer in named.record.layers)
    found = project_of(place)
    key = subject.config.labels.get("io.gpulayers.key", "")
    if found is None or not key:
        return ()
    try:
        plan = found.plan(project_files.fitting_lock(found))
    except GpulayersError:
        return ()
    image = next((image for image in plan.images if image.key == key), None)
    names = image.layer_names if image is not None else ()
    of_base = len(subject.layers) - len(names)
    return (*["base"] * of_base, *names) if names and of_base > 0 else ()


def _sbom(digest: str, place: Where) -> Mapping[str, str]:
    """Packages that a scan of this project found in the image."""
    try:
        state = find(Path.cwd(), project=place.project, matrix=place.matrix).state
        return catalog.read(state).wheels.get(digest, {})
    except ProjectError:
        return {}


def _show(found: Inspected) -> None:
    click.echo(f"{found.name}@{found.digest}" if found.digest else found.name)
    rows = {
        "ours": f"key {found.key[:12]}" if found.key else "no",
        "platform": found.platform,
        "created": found.created,
        "user": found.user or "root",
        "workdir": found.working_dir,
        "entrypoint": " ".join(found.entrypoint),
        "command": " ".join(found.command),
        "python": ", ".join(f"{v} (/{folder})" for folder, v in found.pythons.items()),
        "size": f"{megabytes(found.size_bytes)} in {len(found.layers)} layers, compressed",
    }
    for name, value in rows.items():
        if value:
            click.echo(f"{name:11} {value}")
    click.echo("layers")
    for layer in found.layers:
        unread = f"  ({layer.unread}: not read)" if layer.unread else ""
        click.echo(
            f"  {megabytes(layer.size_bytes):>12}  {layer.owner or layer.digest[:19]}{unread}"
        )
    _section("python packages", _wheels(found))
    _section("CUDA libraries", _libraries(found))
    _section("environment", [f"{name}={value}" for name, value in found.env.items()])
    _section("labels", [f"{name}={value}" for name, value in found.labels.items()])


def _section(title: str, lines: list[str]) -> None:
    click.echo(f"{title}{'' if lines else ': none found'}")
    for line in lines:
        click.echo(f"  {line}")


def _wheels(found: Inspected) -> list[str]:
    texts = {"files": "", "label": "  (its label says so)", "sbom": "  (a scan says so)"}
    return [
        f"{wheel.name} {wheel.version}{texts[wheel.source]}"
        + (f"  in {wheel.owner}" if wheel.owner else "")
        for wheel in found.wheels
    ]


def _libraries(found: Inspected) -> list[str]:
    driver = "  part of a driver: it hides the host's own"
    return [
        f"{megabytes(library.size_bytes):>12}  /{library.path}"
        + (driver if library.is_driver else "")
        for library in found.libraries
    ]
