"""A run of `gpulayers build` put together out of the project, its options and what builds."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from gpulayers.assembly import Assembly
from gpulayers.build import Builder, NothingToBuild
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.options import secret_option
from gpulayers.cli.progress import Progress
from gpulayers.cli.working import wait_option
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
P = ParamSpec("P")
R = TypeVar("R")


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


def making_options(command: Callable[P, R]) -> Callable[P, R]:
    """The options of all commands that make images."""
    path = click.Path(dir_okay=False, path_type=Path)
    for option in (
        wait_option,
        secret_option,
        click.option("--quiet", is_flag=True, help="Say only the summary."),
        click.option("--report", type=path, help="The report, too."),
        click.option("--jobs", type=click.IntRange(1, 64), default=8, help="Images at once."),
        click.option("--builder", default="", help="The buildx builder to use."),
        click.option("--push/--no-push", default=True, help="Move tags, or only build and gate."),
    ):
        command = option(command)
    return command


def settings(options: Mapping[str, object], given: tuple[Given, ...]) -> Settings:
    """What the options of a command that makes images say; those it has not are not set."""
    report = options["report"]
    return Settings(
        push=bool(options["push"]),
        builder=str(options["builder"]),
        shard=str(options.get("shard", "")),
        jobs=int(str(options["jobs"])),
        fail_fast=bool(options.get("fail_fast")),
        locked=bool(options.get("locked")),
        report=report if isinstance(report, Path) else None,
        quiet=bool(options["quiet"]),
        given=given,
    )


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
