"""`gpulayers prune`: room on this machine."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from gpulayers import catalog, disk
from gpulayers.cli.options import where
from gpulayers.cli.progress import megabytes
from gpulayers.cli.working import alone, wait_option
from gpulayers.disk import Piece
from gpulayers.engine.docker import DockerEngine
from gpulayers.errors import ToolError
from gpulayers.project import find
from gpulayers.refs import ImageRef


@click.command("prune", short_help="Remove local caches.")
@click.option(
    "--project",
    type=click.Path(file_okay=False, path_type=Path),
    help="The project's folder (default: the nearest parent with a matrix.toml).",
)
@click.option(
    "--matrix", is_flag=False, flag_value=".", metavar="[FILE]", help="Whose project to prune."
)
@click.option("--dry-run", is_flag=True, help="Say what would go; remove nothing.")
@click.option("--all", "everything", is_flag=True, help="Records, reports and scans too.")
@click.option(
    "--build-cache", is_flag=True, help="The engine's own build cache too, whoever filled it."
)
@wait_option
def prune_command(
    project: Path | None,
    matrix: str | None,
    *,
    dry_run: bool,
    everything: bool,
    build_cache: bool,
    no_wait: bool,
) -> None:
    """Remove what can be made or fetched again.

    Rendered files, logs, Trivy's layer cache, scans of images that no record knows, images that
    the engine pulled from this project's repositories, and the cache of the builder that
    gpulayers made. No registry is touched.
    """
    place = where(project, matrix, (), "")
    state = find(Path.cwd(), project=place.project, matrix=place.matrix).state
    with nullcontext() if dry_run else alone(state, "prune", wait=not no_wait):
        _prune(state, dry_run=dry_run, everything=everything, build_cache=build_cache)


def _prune(state: Path, *, dry_run: bool, everything: bool, build_cache: bool) -> None:
    images = catalog.read(state).images
    engine = DockerEngine()
    pieces = disk.of_state(state, {image.digest for image in images}, everything=everything)
    before = disk.size_of(state)
    try:
        engine.info()
        repositories = {ImageRef.parse(image.ref).name for image in images if image.ref}
        pieces += disk.of_engine(engine, repositories)
        has_engine = True
    except ToolError as error:
        click.echo(f"the engine was not asked: {error}", err=True)
        has_engine = False
    _remove(pieces, engine, dry_run=dry_run)
    if has_engine:
        _build_cache(dry_run=dry_run, shared=build_cache)
    if not dry_run:
        after = disk.size_of(state)
        click.echo(f"{state.name}: {megabytes(before)} before, {megabytes(after)} after")


def _remove(pieces: Sequence[Piece], engine: DockerEngine, *, dry_run: bool) -> None:
    for piece in pieces:
        why = "" if dry_run else disk.remove(piece, engine)
        word = "kept" if why else "would go" if dry_run else "removed"
        _say(word, piece.size_bytes, f"{piece.what}  ({why})" if why else piece.what)
    if not pieces:
        click.echo("nothing to remove in the project's folder and the engine")


def _build_cache(*, dry_run: bool, shared: bool) -> None:
    own = disk.own_builder()
    size = disk.build_cache_bytes(own)
    name = f"build cache of the builder {own}" if own else "build cache of the engine's own builder"
    if not size:
        return
    if not own and not shared:
        _say("kept", size, f"{name}  (others may use it too; --build-cache removes it)")
    elif dry_run:
        _say("would go", size, name)
    else:
        freed, trouble = disk.prune_build_cache(own)
        left = disk.build_cache_bytes(own) or 0
        _say("removed", freed, f"{name}  ({megabytes(size)} before, {megabytes(left)} after)")
        if trouble:
            raise ToolError(trouble, hint="docker buildx prune by hand shows what is wrong")


def _say(word: str, size_bytes: int, text: str) -> None:
    click.echo(f"{word:9} {megabytes(size_bytes):>12}  {text}")
