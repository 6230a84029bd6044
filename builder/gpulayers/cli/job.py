"""A run of `gpulayers build` put together out of the project, its options and what builds."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from gpulayers.assembly import Assembly
from gpulayers.build import Builder, NothingToBuild
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.progress import Progress
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.gates import Gatekeeper
from gpulayers.history import History
from gpulayers.inputs.given import Given
from gpulayers.lock.model import Lock
from gpulayers.plan.model import Image, Plan
from gpulayers.plan.platforms import demand_one
from gpulayers.record import Records
from gpulayers.scan.scanner import Scanner
from gpulayers.smoke.model import Level
from gpulayers.workflow import Run, Wish

SMOKE_SLOTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options of `build` say."""

    push: bool
    builder: str
    shard: str
    jobs: int
    fail_fast: bool
    locked: bool
    report: Path | None
    quiet: bool
    given: tuple[Given, ...] = ()


def planned(found: Loaded, lock: Lock, settings: Settings) -> Plan:
    """The plan of the selected cells, or of one part of them.

    Raises: ProjectError: for several platforms at once, which is not built in this version.
    """
    plan = _sharded(found.plan(lock), settings.shard)
    demand_one(plan.images)
    return plan


def make(
    found: Loaded,
    settings: Settings,
    *,
    plan: Plan,
    builder: Builder | NothingToBuild,
    keeper: Gatekeeper,
    registry: Registry,
    progress: Progress,
    versions: Mapping[str, str],
    assembly: Assembly | None = None,
) -> Run:
    """The run over a plan; ``versions`` are those of what builds."""
    channels = found.matrix.images.channels
    return Run(
        plan=plan,
        builder=builder,
        keeper=keeper,
        registry=registry,
        records=Records(found.project.state / "records"),
        history=History(found.project.state / "channels.json"),
        listener=progress,
        engine=versions,
        assembly=assembly,
        wish=Wish(
            channel=channels[0] if settings.push else "",
            channels=channels,
            jobs=settings.jobs,
            fail_fast=settings.fail_fast,
            accepts_no_scan=keeper.policy.rule(channels[0]).accepts_not_run,
        ),
    )


def _sharded(plan: Plan, shard: str) -> Plan:
    if not shard:
        return plan
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        msg = f"--shard: wanted I/N with 1 <= I <= N, found {shard!r}"
        raise click.UsageError(msg)
    images: tuple[Image, ...] = plan.images[int(part) - 1 :: int(parts)]
    steps = {step.stage: step for image in images for step in image.steps}
    return replace(plan, images=images, steps=tuple(steps.values()))


def keeper(found: Loaded, engine: DockerEngine, scanner: Scanner | None) -> Gatekeeper:
    """Who asks the gates."""
    return Gatekeeper(
        engine=engine,
        scanner=scanner,
        scan_trouble="",
        policy=found.policy,
        channel=found.matrix.images.channels[0],
        budget=found.matrix.budget,
        reports=found.project.state / "scans",
        levels=tuple(Level),
        slots=threading.Semaphore(SMOKE_SLOTS),
    )
