"""Makes one outcome of what all scripts of a level said and how their container fared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpulayers.engine.docker import ContainerState, EngineInfo
from gpulayers.smoke import classify
from gpulayers.smoke.classes import NEXT, Class, status_of
from gpulayers.smoke.model import Level, LevelOutcome, Line, ScriptResult

TOLD = 5
# The line of a traceback that names the exception; its text may go on below it.
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*: ")
STOP_GRACE_S = 5
# 128 and SIGTERM: what a shell and an init report of a child that the signal ended.
STOPPED = 143
COMMAND_NOT_FOUND = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that was seen of one level.

    Shape: ``state`` is the container's after its scripts, before it was told to stop.
    """

    level: Level
    scripts: tuple[ScriptResult, ...]
    state: ContainerState
    seconds: float


def outcome(run: Run) -> LevelOutcome:
    """What a level whose container started came to."""
    cls = _class(run)
    return LevelOutcome(
        level=run.level,
        status=status_of(cls),
        cls=cls,
        text=_joined(_details(run.scripts), cls) if cls else "",
        seconds=run.seconds,
        scripts=run.scripts,
    )


def _class(run: Run) -> Class:
    if classify.is_stand_in(run.scripts):
        return Class.STAND_IN_DRIVER
    classes = [classify.of_script(run.level, result) for result in run.scripts]
    first = next((cls for cls in classes if cls), Class.NONE)
    if not first or first is Class.TIMED_OUT:
        return first
    if run.state.status == "absent":
        return Class.ENGINE_LOST
    if run.state.oom_killed:
        return Class.OUT_OF_MEMORY
    if run.state.status != "running":
        missing = run.state.exit_code in COMMAND_NOT_FOUND
        return Class.COMMAND_MISSING if missing else Class.ENDED_EARLY
    return first


def _details(scripts: Sequence[ScriptResult]) -> str:
    texts = [text for result in scripts if not result.ok for text in _sentences(result)]
    more = f"; and {len(texts) - TOLD} more" if len(texts) > TOLD else ""
    return "; ".join(texts[:TOLD]) + more


def _sentences(result: ScriptResult) -> list[str]:
    if result.timed_out:
        return [f"{result.script}: no end after {result.seconds:.0f} s"]
    if result.broken:
        return [f"{result.script}: {line.format()}" for line in result.broken]
    errors = [text for text in result.said if EXCEPTION.match(text)]
    said = (errors or list(result.said) or ["nothing"])[-1]
    return [f"{result.script}: wanted results and exit 0, found exit {result.code}, said: {said}"]


def _joined(detail: str, cls: Class) -> str:
    return "; ".join(text for text in (detail, NEXT.get(cls, "")) if text)


def not_started(
    level: Level, state: ContainerState, said: str, *, info: EngineInfo, seconds: float
) -> LevelOutcome:
    """What a level whose container never ran came to; names what the engine has."""
    cls = classify.of_start(level, state, said)
    devices = ", ".join(info.cdi_devices) or "none"
    found = f"engine {info.version}, CDI devices: {devices}, runtimes: {_names(info)}"
    detail = f"{state.error or said}; found {found}"
    return LevelOutcome(
        level=level,
        status=status_of(cls),
        cls=cls,
        text=_joined(detail, cls),
        seconds=seconds,
        scripts=(),
    )


def _names(info: EngineInfo) -> str:
    return ", ".join(sorted(info.runtimes)) or "none"


def not_run(level: Level, cls: Class, detail: str) -> LevelOutcome:
    """What a level that nobody tried came to."""
    return LevelOutcome(
        level=level,
        status=status_of(cls),
        cls=cls,
        text=_joined(detail, cls),
        seconds=0.0,
        scripts=(),
    )


def signals(state: ContainerState, seconds: float) -> ScriptResult:
    """Whether a container ended at SIGTERM by itself, in time, and said so by its exit status."""
    ok = state.exit_code == STOPPED and seconds < STOP_GRACE_S
    line = Line(
        check="signals",
        ok=ok,
        value=f"exit {state.exit_code} after {seconds:.1f} s",
        unit="",
        expected=f"exit {STOPPED} within {STOP_GRACE_S} s of SIGTERM",
        skip="",
        stand_in=False,
        error=None,
    )
    return ScriptResult(
        script="image/signals", code=0, seconds=seconds, timed_out=False, lines=(line,), said=()
    )
