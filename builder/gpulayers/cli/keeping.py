"""`gpulayers logs`: what builds said."""

import json
import sys
from pathlib import Path

import click

from gpulayers import logs
from gpulayers.cli.handy import image_options
from gpulayers.cli.loaded import load
from gpulayers.cli.named import cell_of
from gpulayers.cli.options import where
from gpulayers.errors import NothingSelectedError
from gpulayers.logs import Kept
from gpulayers.matrix import tags
from gpulayers.project import find

KB = 1000


@click.command("logs", short_help="Show the kept logs of builds.")
@image_options
@click.option("--failed", is_flag=True, help="Only what failed: images, or an image's steps.")
@click.option("--json", "as_json", is_flag=True, help="The list as JSON on stdout.")
@click.argument("image", metavar="[TAG|CELL]", default="")
def logs_command(
    project: Path | None,
    matrix: str | None,
    registry: str,
    *,
    failed: bool,
    as_json: bool,
    image: str,
) -> None:
    """List the kept build logs, or print that of one image.

    A log is of the image's last real build: one that was found in the registry has none.
    """
    place = where(project, matrix, (), registry)
    folder = find(Path.cwd(), project=place.project, matrix=place.matrix).state / logs.FOLDER
    kept = logs.find(folder)
    if not image:
        _list([log for log in kept if not failed or log.status == "failed"], as_json=as_json)
        return
    tag = image
    if "=" in image:
        found = load(place)
        tag = tags.tag(found.matrix, cell_of(found, image))
    log = next((log for log in kept if log.tag == tag), None)
    if log is None:
        msg = f"{tag}: wanted a log in {folder}, found none"
        raise NothingSelectedError(msg, hint="gpulayers logs lists those that are kept")
    text = log.path.read_text(encoding="utf-8", errors="replace")
    sys.stdout.write(logs.failed_part(text) if failed else text)


def _list(kept: list[Kept], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_row(log) for log in kept], indent=2))
        return
    for log in kept:
        size = f"{log.size_bytes / KB:,.1f} kB"
        click.echo(f"{log.status:10} {log.tag}  {size}  {log.written:%Y-%m-%d %H:%M}  {log.detail}")
    if not kept:
        click.echo("no log is kept", err=True)


def _row(log: Kept) -> dict[str, object]:
    return {
        "tag": log.tag,
        "status": log.status,
        "detail": log.detail,
        "path": str(log.path),
        "bytes": log.size_bytes,
        "written": f"{log.written:%Y-%m-%dT%H:%M:%SZ}",
    }
