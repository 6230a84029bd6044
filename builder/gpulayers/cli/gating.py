"""`gpulayers scan` and `gpulayers test`: gates on images that are there already."""

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from gpulayers import record
from gpulayers.cli import loaded as project_files
from gpulayers.cli.building import REPORT
from gpulayers.cli.known import hints
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.options import where, where_options
from gpulayers.cli.pulled import let_go
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.errors import (
    ContractError,
    NothingSelectedError,
    RemoteError,
    ScanNotMadeError,
    ScanRejectedError,
)
from gpulayers.gates import Gatekeeper
from gpulayers.plan.model import Image
from gpulayers.refs import ImageRef
from gpulayers.scan import gate as scan_gate
from gpulayers.scan.scanner import Scanner
from gpulayers.smoke.model import Level, SmokeReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An image to look at: by digest, with the plan's image when it is one of ours."""

    ref: ImageRef
    image: Image


def targets(found: Loaded, refs: tuple[str, ...]) -> tuple[Target, ...]:
    """The images of these references, or those of the last report.

    Raises: NothingSelectedError: no reference, and no report of a build; RemoteError: a reference
        that the registry does not have; ContractError: an image that the matrix does not plan.
    """
    plan = found.plan(project_files.fitting_lock(found))
    by_key = {image.key: image for image in plan.images}
    if not refs:
        tables = record.read_images(found.project.state / REPORT)
        known = [(str(t.get("ref", "")), str(t.get("key", ""))) for t in tables]
        last = [
            Target(ref=ImageRef.parse(ref), image=by_key[key])
            for ref, key in known
            if ref and key in by_key
        ]
        if not last:
            msg = "no image is named, and no report of a build has one of this matrix"
            raise NothingSelectedError(msg, hint="run: gpulayers build, or name images")
        return tuple(last)
    with Registry() as registry:
        return tuple(_named(registry, text, by_key) for text in refs)


def _named(registry: Registry, text: str, by_key: Mapping[str, Image]) -> Target:
    ref = ImageRef.parse(text)
    digest = ref.digest or registry.resolve(ref)
    if digest is None:
        msg = f"{text}: the registry has no such image"
        raise RemoteError(msg, hint="gpulayers catalog lists what was built")
    by_digest = ref.with_digest(digest)
    platform = next(iter(by_key.values())).platform
    manifest = registry.manifest(by_digest, platform)
    key = registry.config(by_digest, manifest).labels.get("io.gpulayers.key", "")
    if key not in by_key:
        msg = f"{text}: not an image of this matrix as it is now (key {key[:12] or 'none'})"
        raise ContractError(msg, hint="gpulayers plan lists the keys")
    return Target(ref=by_digest, image=by_key[key])


@click.command("test", short_help="Run the smoke ladder.")
@where_options
@click.argument("refs", nargs=-1)
@click.option("--require-gpu", is_flag=True, help="Exit 15 unless a real GPU computed.")
@click.option("--level", default="cpu,gpu", help="Levels, with commas: cpu, gpu.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def test_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    refs: tuple[str, ...],
    require_gpu: bool,
    level: str,
    as_json: bool,
) -> None:
    """Run the smoke ladder on images: those named, or those of the last build."""
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    keeper = _test_keeper(found, level)
    with let_go(found.repository(), DockerEngine()):
        reports = [(t, keeper.smoke(t.image, t.ref)) for t in targets(found, refs)]
    if as_json:
        click.echo(json.dumps([_smoke_document(t, r) for t, r in reports], indent=2))
    else:
        for target, report in reports:
            click.echo(f"{report.status:9} {target.image.tag}: {report.text}")
            said = (text for one in report.levels for script in one.scripts for text in script.said)
            for hint in hints((report.text, *said)) if report.status != "passed" else ():
                click.echo(f"          {hint}")
    failed = [target.image.tag for target, report in reports if report.status == "failed"]
    if failed:
        msg = f"{len(failed)} of {len(reports)} images failed: {', '.join(failed)}"
        raise ContractError(msg, hint="the lines above name the checks")
    if require_gpu:
        for _, report in reports:
            report.demand_gpu()


def _test_keeper(found: Loaded, level: str) -> Gatekeeper:
    asked = [word.strip() for word in level.split(",") if word.strip()]
    unknown = sorted(set(asked) - {*Level, "static"})
    if unknown or not asked:
        msg = f"--level: wanted some of {', '.join(Level)}, found {level!r}"
        raise click.UsageError(msg)
    if "static" in asked:
        click.echo("static: not run (this version has no static checks)", err=True)
    return Gatekeeper(
        engine=DockerEngine(),
        scanner=None,
        scan_trouble="not asked",
        policy=found.policy,
        channel=found.matrix.images.channels[0],
        budget=found.matrix.budget,
        reports=found.project.state / "scans",
        levels=tuple(one for one in Level if one in asked),
        slots=threading.Semaphore(1),
    )


def _smoke_document(target: Target, report: SmokeReport) -> dict[str, object]:
    return {
        "ref": target.ref.format(),
        "tag": target.image.tag,
        "status": report.status,
        "class": report.cls,
        "text": report.text,
        "gpu_proven": report.gpu_proven,
        "levels": [
            {
                "level": one.level,
                "status": one.status,
                "class": one.cls,
                "text": one.text,
                "seconds": round(one.seconds, 2),
                "checks": [
                    {
                        "script": script.script,
                        "check": line.check,
                        "ok": line.ok,
                        "value": line.value,
                        "expected": line.expected,
                    }
                    for script in one.scripts
                    for line in script.lines
                ],
            }
            for one in report.levels
        ],
    }


@click.command("scan", short_help="Scan images.")
@where_options
@click.argument("refs", nargs=-1)
@click.option("--channel", default="", help="Whose policy to apply (default: the lowest).")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def scan_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    refs: tuple[str, ...],
    channel: str,
    as_json: bool,
) -> None:
    """Scan images by digest: those named, or those of the last build."""
    found = project_files.load(where(project, matrix, only, registry))
    found.demand_cells()
    scanner = Scanner.open(found.project.state / "trivy")
    name = channel or found.matrix.images.channels[0]
    done = []
    for target in targets(found, refs):
        raw = scanner.scan(target.ref, target.image.platform, reports=found.project.state / "scans")
        done.append((target, scan_gate.judged(raw, found.policy, name)))
    if as_json:
        click.echo(json.dumps([_scan_document(t, o) for t, o in done], indent=2))
    else:
        for target, outcome in done:
            summary = scan_gate.summary(outcome.report) if outcome.report is not None else ""
            click.echo(f"{outcome.status:9} {target.image.tag}: {outcome.text or summary}")
    _end_scan([outcome for _, outcome in done], name)


def _end_scan(outcomes: list[scan_gate.Outcome], channel: str) -> None:
    rejected = sum(outcome.status == "failed" for outcome in outcomes)
    if rejected:
        msg = f"{rejected} of {len(outcomes)} images are rejected by the policy of {channel}"
        raise ScanRejectedError(msg, hint="scans/policy.toml has the policy")
    unmade = sum(outcome.status == "not-run" for outcome in outcomes)
    if unmade:
        msg = f"{unmade} of {len(outcomes)} scans could not be made whole"
        raise ScanNotMadeError(msg, hint="the lines above say why")
    sys.exit(0)


def _scan_document(target: Target, outcome: scan_gate.Outcome) -> dict[str, object]:
    findings = outcome.report.findings if outcome.report is not None else ()
    return {
        "ref": target.ref.format(),
        "tag": target.image.tag,
        "status": outcome.status,
        "class": outcome.cls,
        "text": outcome.text,
        "report": str(outcome.report_path) if outcome.report_path is not None else "",
        "findings": [
            {
                "id": finding.id,
                "kind": finding.kind,
                "package": finding.package,
                "installed": finding.installed,
                "fixed": finding.fixed,
                "severity": finding.severity,
            }
            for finding in findings
        ],
    }
