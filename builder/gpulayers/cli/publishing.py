"""`gpulayers catalog`, `promote` and `doctor`."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from gpulayers import catalog, doctor, promotion
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.options import where, where_options
from gpulayers.cli.working import alone, wait_option
from gpulayers.engine.registry import Registry
from gpulayers.errors import GpulayersError, NothingSelectedError, ProjectError, RemoteError
from gpulayers.history import History
from gpulayers.matrix import tags
from gpulayers.record import ImageRecord
from gpulayers.refs import ImageRef

HISTORY = "channels.json"


@click.command("catalog", short_help="Write a page and JSON of every image.")
@where_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to (default: .gpulayers/catalog).",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout; no file is written.")
def catalog_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write a page and JSON of every image that was built here, with the tags that it holds."""
    found = project_files.load(where(project, matrix, only, registry))
    state, checked = catalog.read(found.project.state), False
    try:
        with Registry() as client:
            refs = [ImageRef.parse(text) for text in state.holders]
            state, checked = catalog.seen_by(state, client.resolve_many(refs)), True
    except RemoteError as error:
        click.echo(f"the registry was not asked for its tags: {error}", err=True)
    made = catalog.make(state, found.matrix.images.channels, checked=checked)
    if as_json:
        click.echo(json.dumps(catalog.format_json(made), indent=2))
        return
    page, document = catalog.write(out or found.project.state / "catalog", made)
    click.echo(f"{page}\n{document}")


@click.command("promote", short_help="Move a channel's tags to gated digests.")
@where_options
@click.option("--to", "channel", required=True, help="The channel whose tags move.")
@click.option("--rollback", is_flag=True, help="Move them back to where they were before.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@wait_option
def promote_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    channel: str,
    rollback: bool,
    as_json: bool,
    no_wait: bool,
) -> None:
    """Move a channel's tags to the digests that passed, or back; one refusal moves nothing."""
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    channels = found.matrix.images.channels
    if channel not in channels:
        msg = f"--to: wanted a channel of {', '.join(channels)}, found {channel!r}"
        raise ProjectError(msg, hint="channels are named in matrix.toml under [images]")
    with alone(found.project.state, "promote", wait=not no_wait), Registry() as client:
        lines = _back(found, channel, client) if rollback else _forward(found, channel, client)
    if as_json:
        click.echo(json.dumps(lines, indent=2))
        return
    for line in lines:
        click.echo(f"{line['state']:8} {line['ref']}  {line['digest']}")


def _forward(found: Loaded, channel: str, client: Registry) -> list[Mapping[str, str]]:
    now = datetime.now(UTC)
    judge = promotion.Judge(
        policy=found.policy, channel=channel, scans=found.project.state / "scans", now=now
    )
    images = [promotion.rejudged(image, judge) for image in _last(found)]
    rule = found.policy.rule(channel)
    terms = promotion.Terms(scan_not_run=rule.accepts_not_run, gpu_not_run=True)
    decision = promotion.decide(images, channel, terms)
    error: GpulayersError | None = decision.error()
    if error is not None:
        raise error
    journal = promotion.Journal(history=_history(found), who="promote", now=now)
    target = promotion.Target(channel=channel, channels=found.matrix.images.channels)
    return [
        {
            "ref": done.refs[-1],
            "digest": done.digest,
            "state": "there" if done.move is None else "moved",
        }
        for done in promotion.carry(client, decision.allowed, target, journal)
    ]


def _back(found: Loaded, channel: str, client: Registry) -> list[Mapping[str, str]]:
    history = _history(found)
    refs: Sequence[ImageRef] = [ImageRef.parse(text) for text in history.refs(channel)]
    if found.only:
        name = found.repository()
        wanted = {
            name.with_tag(tags.channel_tag(found.matrix, cell, channel)).format()
            for cell in found.cells
        }
        refs = [ref for ref in refs if ref.format() in wanted]
    if not refs:
        msg = f"no tag of {channel} was moved from here"
        raise NothingSelectedError(msg, hint="a rollback needs the project's .gpulayers folder")
    journal = promotion.Journal(history=history, who="rollback", now=datetime.now(UTC))
    done = promotion.rollback(client, refs, channel, journal)
    moved = [{"ref": move.ref, "digest": move.new, "state": "moved"} for move in done.moved]
    return [*moved, *({"ref": r, "digest": why, "state": "kept"} for r, why in done.kept.items())]


def _last(found: Loaded) -> tuple[ImageRecord, ...]:
    cells = [cell.values() for cell in found.cells]
    images = [i for i in catalog.read(found.project.state).last if dict(i.cell) in cells]
    if not images:
        msg = "no image of these cells is in the last report"
        raise NothingSelectedError(msg, hint="run: gpulayers build")
    return tuple(images)


def _history(found: Loaded) -> History:
    return History(found.project.state / HISTORY)


@click.command("doctor", short_help="Say what this machine has and lacks.")
@where_options
@click.option("--require-gpu", is_flag=True, help="A missing GPU is a failure (exit 15).")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def doctor_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    require_gpu: bool,
    as_json: bool,
) -> None:
    """Say what this machine has and lacks: found, wanted, and what mends it."""
    try:
        found: Loaded | None = project_files.load(where(project, matrix, only, registry))
    except ProjectError as error:
        click.echo(f"without a project: {str(error).splitlines()[0]}", err=True)
        found = None
    with Registry() as client:
        machine = doctor.Machine(
            registry=client,
            root=found.root if found is not None else registry,
            name=found.matrix.images.name if found is not None else "",
            disk=found.project.root if found is not None else Path.cwd(),
            trivy_state=(found.project.state if found is not None else Path.cwd()) / "trivy",
            require_gpu=require_gpu,
        )
        parts = doctor.examine(machine)
    if as_json:
        click.echo(json.dumps(doctor.format_json(parts), indent=2))
    else:
        for part in parts:
            click.echo(f"{part.status:8} {part.name}: {part.found}")
            if part.status != "passed":
                click.echo(f"         wanted: {part.wanted}")
                if part.fix:
                    click.echo(f"         fix: {part.fix}")
    sys.exit(_doctor_code(parts, require_gpu=require_gpu))


def _doctor_code(parts: Sequence[doctor.Part], *, require_gpu: bool) -> int:
    if doctor.is_fit(parts):
        return 0
    failed = [part.name for part in parts if part.status == "failed"]
    only_gpu = require_gpu and all(name.startswith("gpu") for name in failed)
    return 15 if only_gpu else 5
