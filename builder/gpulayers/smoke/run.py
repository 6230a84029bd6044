"""Runs the smoke ladder: a container a level, its scripts by ``exec``, always removed.

Scripts go in on standard input: that works with a read-only root (which refuses ``docker cp``) and
with engines on other machines (which cannot mount our files).
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpulayers.engine.docker import (
    Container,
    ContainerState,
    EngineInfo,
    ImageConfig,
)
from gpulayers.engine.process import Finished
from gpulayers.errors import ContractError, RemoteError
from gpulayers.refs import ImageRef, Platform
from gpulayers.smoke import judge, parse
from gpulayers.smoke.classes import Class, Status
from gpulayers.smoke.model import (
    Check,
    Level,
    LevelOutcome,
    ScriptResult,
    SmokeReport,
    of_level,
)

# No user of the image: platforms such as OpenShift choose one, with group 0.
USER = "12345:0"
TIMEOUT_S = 120.0
CDI_KIND = "nvidia.com/gpu"
# A client that is killed outright leaves its container behind; it then ends by itself.
LIFETIMES = 3
DASHES = "--"


class Engine(Protocol):
    """What the ladder needs of a container engine."""

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        ...

    def pull(self, ref: ImageRef, platform: Platform) -> None:
        """Bring an image to the engine."""
        ...

    def image_config(self, ref: ImageRef) -> ImageConfig:
        """How containers of an image start."""
        ...

    def start(self, container: Container) -> Finished:
        """Start a container in the background."""
        ...

    def execute(self, name: str, argv: Sequence[str], *, stdin: str, timeout_s: float) -> Finished:
        """Run a program in a running container."""
        ...

    def stop(self, name: str, *, grace_s: int) -> Finished:
        """SIGTERM, and SIGKILL after the grace time."""
        ...

    def inspect(self, name: str) -> ContainerState:
        """What became of a container."""
        ...

    def remove(self, name: str) -> None:
        """End and remove a container."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The image to try, by digest, and what its scripts are told.

    Shape: ``cell`` maps axes to values as matrix.toml spells them; ``wheels`` maps the packages
    that the lock installed to their versions.
    """

    image: ImageRef
    platform: Platform
    cell: Mapping[str, str]
    wheels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to try it.

    Units: ``timeout_s`` seconds for all scripts of one level together.
    """

    levels: tuple[Level, ...] = (Level.CPU, Level.GPU)
    timeout_s: float = TIMEOUT_S
    cdi_kind: str = CDI_KIND


def run(
    engine: Engine, subject: Subject, checks: Sequence[Check], *, options: Options | None = None
) -> SmokeReport:
    """What an image's checks say, level by level; a level below that did not pass ends the ladder.

    Shape: one outcome a level, in the order of ``options.levels``. A host without a GPU gives
    ``not-run`` and a stand-in driver ``simulated``; ``SmokeReport.demand_gpu`` refuses both.
    Raises: ContractError: the image is not named by digest. ToolError: no engine answers.
    """
    options = options or Options()
    if not subject.image.digest:
        msg = f"{subject.image.format()}: wanted an image by digest, found none"
        raise ContractError(msg, hint="tags move; resolve the tag first")
    info = engine.info()
    try:
        engine.pull(subject.image, subject.platform)
    except RemoteError as error:
        untried = (judge.not_run(x, Class.IMAGE_NOT_PULLED, str(error)) for x in options.levels)
        return SmokeReport(image=subject.image, levels=tuple(untried))
    ladder = _Ladder(engine=engine, subject=subject, info=info, options=options)
    return SmokeReport(image=subject.image, levels=ladder.climb(checks))


def gpu_options(info: EngineInfo, kind: str) -> tuple[str, ...]:
    """How to ask this engine for all its GPUs: by CDI where it lists a device, else by ``--gpus``.

    Source: engines before 29.2 never try CDI for ``--gpus`` (moby's tags; 28.5 measured).
    """
    listed = [name for name in info.cdi_devices if name.startswith(f"{kind}=")]
    whole = f"{kind}=all"
    wanted = [whole] if whole in listed else listed
    return tuple(f"--device={name}" for name in wanted) or ("--gpus=all",)


def without_app(entrypoint: Sequence[str]) -> tuple[str, ...]:
    """An entrypoint up to ``--``, where the program that it runs stands after it; else empty.

    Shape: of ours, what is left is tini, which the scripts are to run under as the program does.
    """
    if DASHES not in entrypoint[:-1]:
        return ()
    return tuple(entrypoint[: entrypoint.index(DASHES) + 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ladder:
    engine: Engine
    subject: Subject
    info: EngineInfo
    options: Options

    def climb(self, checks: Sequence[Check]) -> tuple[LevelOutcome, ...]:
        outcomes: list[LevelOutcome] = []
        for level in self.options.levels:
            below = next((x for x in outcomes if x.status is not Status.PASSED), None)
            if below is not None:
                detail = f"{below.level} is {below.status}"
                outcomes.append(judge.not_run(level, Class.EARLIER_LEVEL_FAILED, detail))
            elif not of_level(checks, level):
                outcomes.append(judge.not_run(level, Class.NO_CHECKS, ""))
            else:
                outcomes.append(self.level(level, of_level(checks, level)))
        return tuple(outcomes)

    def level(self, level: Level, checks: Sequence[Check]) -> LevelOutcome:
        name = f"gpulayers-smoke-{level}-{secrets.token_hex(6)}"
        begin = time.monotonic()
        try:
            started = self.engine.start(self.container(name, level))
            if not started.ok:
                state, said = self.engine.inspect(name), " ".join(started.tail(3))
                spent = time.monotonic() - begin
                return judge.not_started(level, state, said, info=self.info, seconds=spent)
            scripts = self.scripts(name, checks, stop_at_first=level is Level.GPU)
            state = self.engine.inspect(name)
            if level is Level.CPU and state.status == "running":
                scripts = (*scripts, self.stopped(name))
        finally:
            self.engine.remove(name)
        spent = time.monotonic() - begin
        return judge.outcome(judge.Run(level=level, scripts=scripts, state=state, seconds=spent))

    def container(self, name: str, level: Level) -> Container:
        config = self.engine.image_config(self.subject.image)
        home = config.env.get("HOME", "/")
        inputs = {"CELL": self.subject.cell, "WHEELS": self.subject.wheels}
        front = without_app(config.entrypoint)
        lifetime_s = int(self.options.timeout_s * LIFETIMES)
        gpu = gpu_options(self.info, self.options.cdi_kind) if level is Level.GPU else ()
        return Container(
            name=name,
            image=self.subject.image,
            platform=self.subject.platform,
            user=USER,
            env={f"GPULAYERS_{key}": json.dumps(dict(value)) for key, value in inputs.items()},
            tmpfs=tuple(sorted({"/tmp", home} - {"/"})),  # noqa: S108 - inside the container
            gpu=gpu,
            entrypoint=front[0] if front else "",
            command=(*front[1:], "python", "-c", f"import time; time.sleep({lifetime_s})"),
        )

    def scripts(
        self, name: str, checks: Sequence[Check], *, stop_at_first: bool
    ) -> tuple[ScriptResult, ...]:
        end = time.monotonic() + self.options.timeout_s
        results: list[ScriptResult] = []
        for check in checks:
            left_s = max(end - time.monotonic(), 0.1)
            finished = self.engine.execute(
                name, ("python", "-"), stdin=check.text, timeout_s=left_s
            )
            results.append(parse.result(check, finished))
            if finished.timed_out or (stop_at_first and not results[-1].ok):
                break
        return tuple(results)

    def stopped(self, name: str) -> ScriptResult:
        begin = time.monotonic()
        self.engine.stop(name, grace_s=judge.STOP_GRACE_S)
        return judge.signals(self.engine.inspect(name), time.monotonic() - begin)
