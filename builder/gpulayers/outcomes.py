"""What became of an image, as its record: made, refused, broken, not tried, or interrupted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpulayers import build, classes
from gpulayers.engine.buildx import StepFailure
from gpulayers.errors import GpulayersError
from gpulayers.inside import Inside
from gpulayers.plan.model import Image, Step
from gpulayers.record import Failure, Gate, GateName, ImageRecord, ImageStatus, Layer, no_gates
from gpulayers.refs import ImageRef

# The gates that stop a push from inside the build, in their order there.
INSIDE: tuple[GateName, ...] = ("identity", "duplicates")
STOPPED = "the run was stopped"
TAIL_LINES = 40


def inside(text: str) -> dict[GateName, Gate]:
    """The gates that an image passed, or it would not have been pushed."""
    return {name: Gate(status="passed", cls="", text=text, seconds=0.0) for name in INSIDE}


def interrupted(image: Image) -> ImageRecord:
    """An image that the run was stopped before or in."""
    return record(image, status="not-tried", gates=no_gates("interrupted", STOPPED))


def not_tried(image: Image, why: str) -> ImageRecord:
    """An image that need not be started."""
    return record(image, status="not-tried", gates=no_gates("not-tried", why))


def without_model(image: Image, why: str) -> ImageRecord:
    """An image whose model's files could not be had."""
    name = image.cell.model
    failure = Failure(
        blocks="push",
        cls="model-not-fetched",
        step=f"model-{name}",
        exit=0,
        stderr_tail=tuple(why.splitlines()),
        repeat=f"gpulayers build --only model={name}",
    )
    gates = no_gates("not-built", f"not built: model {name} could not be fetched")
    return record(image, status="failed", gates=gates, failure=failure)


def broken(
    image: Image, said: StepFailure, *, cls: str, tools: Step, repeat: str
) -> tuple[ImageRecord, Step | None]:
    """An image whose build failed, and the step that no other image need try either."""
    failure = build.failure(image, said, cls=cls, tools=tools, repeat=repeat)
    found = no_gates("not-built", f"not built: step {failure.step} failed")
    for word in INSIDE:
        if failure.blocks == word:
            lines = [line for line in failure.stderr_tail if line.startswith(f"{word}:")]
            text = "; ".join(lines) or failure.stderr_tail[-1]
            found[word] = Gate(status="failed", cls=failure.cls, text=text, seconds=0.0)
    step = build.broken_step(image, said, tools) if failure.blocks == "build" else None
    return record(image, status="failed", gates=found, failure=failure), step


def refused_inside(image: Image, said: Mapping[Inside, Gate], repeat: str) -> ImageRecord | None:
    """An image that was put together and is not what its name says; None where it is."""
    name = next((name for name, gate in said.items() if gate.status == "failed"), None)
    if name is None:
        return None
    failure = _by_gate(name, name, said[name], exit_status=1, repeat=repeat)
    found = no_gates("not-built", f"no tag: {name} failed") | dict(said)
    return record(image, status="failed", gates=found, failure=failure)


def refused(made: ImageRecord, word: str, gate: Gate, repeat: str) -> ImageRecord:
    """An image that a gate keeps from its tags; it can be looked at by its digest."""
    again = f"gpulayers test {made.ref}" if word == "smoke" else repeat
    blocks = classes.word_of(gate.cls, word)
    return replace(
        made,
        status="failed",
        failure=_by_gate(blocks, word, gate, exit_status=0, repeat=again),
    )


def trouble(image: Image, error: GpulayersError, repeat: str) -> ImageRecord:
    """An image that engine or registry would not let us bring to its end."""
    gates = no_gates("not-reached", str(error))
    return record(image, status="failed", gates=gates, failure=build.trouble(error, repeat))


def record(
    image: Image,
    *,
    status: ImageStatus,
    gates: Mapping[GateName, Gate],
    ref: ImageRef | None = None,
    layers: Sequence[Layer] = (),
    failure: Failure | None = None,
) -> ImageRecord:
    """What is known of an image; no tag points at it yet."""
    return ImageRecord(
        cell=image.cell.values(),
        platform=image.platform.format(),
        key=image.key,
        tag=image.tag,
        ref=ref.format() if ref is not None else "",
        digest=ref.digest if ref is not None else "",
        tags=(),
        status=status,
        layers=tuple(layers),
        gates=gates,
        failure=failure,
    )


def word(made: ImageRecord) -> str:
    """What became of it, in one word."""
    return "failed" if made.failure is not None else made.status


def text(made: ImageRecord) -> str:
    """What became of it, in one line."""
    if made.failure is not None:
        return f"{made.failure.cls} in {made.failure.step}"
    return ", ".join(f"{name} {gate.status}" for name, gate in made.gates.items())


def _by_gate(blocks: str, step: str, gate: Gate, *, exit_status: int, repeat: str) -> Failure:
    return Failure(
        blocks=blocks,
        cls=gate.cls,
        step=step,
        exit=exit_status,
        stderr_tail=tuple((gate.text or gate.cls).split("; "))[-TAIL_LINES:],
        repeat=repeat,
    )
