"""`gpulayers status`: which images are stale, and why."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from gpulayers import patching, publish
from gpulayers.catalog.parse import parse_image
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.locking import CHECKED, resolve
from gpulayers.cli.options import where, where_options
from gpulayers.cli.working import alone, wait_option
from gpulayers.engine.registry import Registry
from gpulayers.errors import GpulayersError, RemoteError, ToolError
from gpulayers.lock import moved
from gpulayers.lock import update as updating
from gpulayers.lock.model import Lock
from gpulayers.lock.wanted import TOOLS
from gpulayers.plan.model import Image
from gpulayers.record import ImageRecord, Records
from gpulayers.refs import ImageRef

EXIT_STALE = 13
TOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One image: what is stale of it; nothing where it is as the project wants it."""

    tag: str
    digest: str
    reasons: tuple[str, ...]


@click.command("status", short_help="Say which images are stale, and why.")
@where_options
@click.option("--ask/--no-ask", default=True, help="Ask what bases and packages are there today.")
@click.option("--builder", default="", help="The buildx builder to ask with.")
@click.option("--exit-code", "ends_so", is_flag=True, help="Exit 13 when anything is stale.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@wait_option
def status_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    ask: bool,
    builder: str,
    ends_so: bool,
    as_json: bool,
    no_wait: bool,
) -> None:
    """Say of each image whether it is built and released as it is wanted now, and if not, why.

    Stale is: not built, not the one that its channel has, on a base or packages that moved, with a
    fix for what its scan found, or with a scan that is too old.
    """
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    lock = project_files.read_lock(found)
    changed = ("there is none",) if lock is None else project_files.differences(found, lock)
    fleet = [f"lock: {line}; run: gpulayers lock" for line in changed]
    if lock is None or changed:
        standings: Sequence[Standing] = ()
    else:
        upstream, unknown = _upstream(found, lock, builder, ask=ask, wait=not no_wait)
        fleet += unknown
        with Registry() as client:
            standings = [_standing(found, x, client, upstream) for x in found.plan(lock).images]
    _print(fleet, standings, as_json=as_json)
    if ends_so and (fleet or any(one.reasons for one in standings)):
        sys.exit(EXIT_STALE)


def _upstream(
    found: Loaded, lock: Lock, builder: str, *, ask: bool, wait: bool
) -> tuple[Mapping[str, Sequence[str]], list[str]]:
    """What moved by OS, and what could not be asked."""
    oses = sorted({base.os for base in lock.bases} - {TOOLS})
    if not ask:
        return {}, ["not asked what bases and packages are there today (--no-ask)"]
    moves: dict[str, Sequence[str]] = {}
    try:
        with alone(found.project.state, "status", wait=wait):
            now = resolve(found, builder, keep=updating.keeping(lock, oses), suffix=CHECKED)
            for os in oses:
                alone_moved = updating.only_os(lock, now, os)
                moves[os] = moved.differences(lock, alone_moved)
    except (RemoteError, ToolError) as error:
        return {}, [f"not known what bases and packages are there today: {_first(error)}"]
    return moves, []


def _first(error: GpulayersError) -> str:
    return str(error).splitlines()[0]


def _standing(
    found: Loaded, image: Image, client: Registry, upstream: Mapping[str, Sequence[str]]
) -> Standing:
    channels = found.matrix.images.channels
    tags = publish.tags_for(image.tag, channels[0], image.key12, channels)
    place = found.repository()
    digest = client.resolve(place.with_tag(tags[0])) or ""
    reasons = [*_of_build(image, digest, place, tags[-1], client)]
    lines = upstream.get(image.cell.os, ())
    if lines:
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        reasons.append(f"{lines[0]}{more}; run: gpulayers patch")
    if digest:
        reasons += _of_scan(found, _record(found, digest))
    return Standing(tag=image.tag, digest=digest, reasons=tuple(reasons))


def _of_build(
    image: Image, digest: str, place: ImageRef, moving: str, client: Registry
) -> Iterator[str]:
    if not digest:
        waits = client.resolve(place.with_tag(image.staging)) is not None
        what = "built, and its gates did not let it through" if waits else "not built"
        yield f"{what} (key {image.key12}); run: gpulayers build"
    elif client.resolve(place.with_tag(moving)) != digest:
        yield f"{moving} is another image; run: gpulayers build"


def _record(found: Loaded, digest: str) -> ImageRecord | None:
    return parse_image(Records(found.project.state / "records").read(digest))


def _of_scan(found: Loaded, record: ImageRecord | None) -> Iterator[str]:
    scan = record.gates.get("scan") if record is not None else None
    if record is None or scan is None:
        yield "nothing is known here of its gates; run: gpulayers scan"
        return
    if scan.status == "not-run":
        yield f"its scan was not made ({scan.cls}); run: gpulayers scan"
        return
    scans = found.project.state / "scans"
    created = patching.scanned(record, scans)
    limit = timedelta(days=found.policy.max_age_days)
    if created is None or datetime.now(UTC) - created > limit:
        said = "its report is gone" if created is None else f"it is of {created:%Y-%m-%d}"
        yield f"its scan is too old ({said}); run: gpulayers scan"
    fixed = [one for one in patching.vulnerabilities(record, scans) or () if one.fixed]
    if fixed:
        names = ", ".join(f"{one.id} in {one.package}" for one in fixed[:TOLD])
        more = f" and {len(fixed) - TOLD} more" if len(fixed) > TOLD else ""
        yield f"there are fixes for {names}{more}; run: gpulayers patch, or lock --update NAME"


def _print(fleet: Sequence[str], standings: Sequence[Standing], *, as_json: bool) -> None:
    if as_json:
        images = [{"tag": x.tag, "digest": x.digest, "stale": list(x.reasons)} for x in standings]
        click.echo(json.dumps({"fleet": list(fleet), "images": images}, indent=2))
        return
    for line in fleet:
        click.echo(line)
    for one in standings:
        click.echo(f"{'stale' if one.reasons else 'current':8} {one.tag}")
        for reason in one.reasons:
            click.echo(f"         {reason}")
    stale = sum(bool(one.reasons) for one in standings)
    if standings:
        click.echo(f"{stale} of {len(standings)} images are stale")
