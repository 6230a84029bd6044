"""Building one image: one call, its digest in the registry, or the reason why not."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from gpulayers import logs
from gpulayers.classes import KINDS
from gpulayers.engine.buildx import (
    Buildx,
    OnTransfer,
    OnVertex,
    Outcome,
    Secret,
    StepFailure,
)
from gpulayers.engine.registry import Manifest, RegistryError, Trouble
from gpulayers.engine.space import SpaceWatch
from gpulayers.errors import GpulayersError, ToolError
from gpulayers.failure import classify
from gpulayers.inputs import Inputs
from gpulayers.inputs.given import Given
from gpulayers.plan.model import IDENTITY, Image, Step, layer_steps
from gpulayers.record import Failure, Layer
from gpulayers.render import mounts
from gpulayers.render.bake import CACHE_OPTIONS, COMPRESSION
from gpulayers.render.files import BAKE_FILE

STAGE = re.compile(r"^\[(?:\S+ )?(?P<stage>[a-z0-9][a-z0-9.-]*)\s+\d+/\d+\]")
PUSH_WORK = ("exporting to image", "pushing", "exporting manifest")
DUPLICATES = "duplicates:"  # how lines of that check begin
CLIENT = "the builder"
# BuildKit itself has tried a broken push for some 5 s by then.
PAUSES_S = (2.0,)
OF_REGISTRY = {
    Trouble.UNREACHABLE: "registry-unreachable",
    Trouble.SERVER: "registry-unreachable",
    Trouble.RATE_LIMIT: "rate-limit",
    Trouble.AUTH_DENIED: "auth-denied",
    Trouble.PUSH_PERMISSION: "auth-denied",
    Trouble.TOO_BIG: "layer-too-big",
}
TIMEOUT_S = 3 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What images are built with.

    Shape: ``rendered`` is the folder of the bake file; ``logs`` that of the kept logs, or None;
    ``given`` are the secrets that the layers ask for; ``space`` watches the disk where the
    engine keeps its data, None where that is not on this machine.
    """

    buildx: Buildx
    rendered: Path
    project: Path
    root: str
    name: str
    inputs: Inputs
    logs: Path | None = None
    given: tuple[Given, ...] = ()
    space: SpaceWatch | None = None

    def staging(self, image: Image) -> str:
        """Where an image waits for its gates."""
        return f"{self.root}/{self.name}:{image.staging}"

    def build(
        self,
        image: Image,
        on_vertex: OnVertex | None = None,
        on_transfer: OnTransfer | None = None,
    ) -> Outcome:
        """Build and push to the staging reference; nothing is pushed when the identity is wrong."""
        settings = [_output(self.staging(image))]
        title = f"image {image.tag}, key {image.key}; again: {self.repeat(image)}"
        return self._bake(image, settings, title, on_vertex, on_transfer)

    def build_step(
        self,
        image: Image,
        step: Step,
        file: str,
        ref: str,
        on_vertex: OnVertex | None = None,
        on_transfer: OnTransfer | None = None,
    ) -> Outcome:
        """Build one step of an image alone, by a file below the rendered ones, and push it."""
        cache = f"{self.root}/{self.name}-cache:{step.stage}"
        settings = [
            *(f"dockerfile={file}", "target=step", _output(ref)),
            # That of the image holds all of its steps, and is not to be replaced by one.
            f"cache-to=type=registry,ref={cache},{CACHE_OPTIONS}",
        ]
        title = f"step {step.name} of image {image.tag}, key {step.key}"
        return self._bake(image, settings, title, on_vertex, on_transfer)

    def _bake(
        self,
        image: Image,
        settings: Sequence[str],
        title: str,
        on_vertex: OnVertex | None,
        on_transfer: OnTransfer | None,
    ) -> Outcome:
        settings = [
            *settings,
            # A base may have a copy that is nearer than what the file says.
            f"contexts.base=docker-image://{image.base}",
            f"contexts.tools-base=docker-image://{image.tools_base}",
        ]
        if self.inputs.ca is not None:
            settings.append(f"secrets+={Secret(id='ca', source=self.inputs.ca).format()}")
        watched = self.space.watched() if self.space is not None else nullcontext()
        with logs.keep(self.logs, image.tag, title) as log, watched:
            outcome = self.buildx.bake(
                self.rendered / BAKE_FILE,
                image.target,
                settings=settings,
                variables={**self._variables(self.inputs.folder), **self.inputs.proxies},
                timeout_s=TIMEOUT_S,
                on_vertex=on_vertex,
                on_transfer=on_transfer,
                events=log.events,
            )
            failure = outcome.failure
            if failure is None:
                log.end("built", outcome.digest)
            else:
                log.end("failed", f"in {failure.step or 'the builder'}, exit {failure.exit}")
        return outcome

    def _variables(self, inputs: Path) -> Mapping[str, str]:
        """Where things are, and never what is in them: a failure prints these."""
        return {
            "REGISTRY": self.root,
            "INPUTS": str(inputs),
            "PROJECT": str(self.project),
            **{mounts.variable(one.id): one.source for one in self.given},
        }

    def repeat(self, image: Image) -> str:
        """The command that builds this image by hand, in the folder of the rendered files."""
        variables = self._variables(self.inputs.by_hand)
        words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        words += [f"NETWORK={self.buildx.network}", "docker buildx bake"]
        words += [f"--builder={self.buildx.builder}"] if self.buildx.builder else []
        words += ["--allow=fs.read=*", "--allow=network.host", f"--file={BAKE_FILE}"]
        if self.inputs.ca is not None:
            words.append(f"--set='*.secrets+=id=ca,src={self.inputs.ca}'")
        return f"cd {shlex.quote(str(self.rendered))} && {' '.join(words)} {image.target}"


def _output(ref: str) -> str:
    return f"output=type=image,name={ref},push=true,unpack=false,store=false,{COMPRESSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToBuild:
    """In the place of a builder where all images are there; ``root`` and ``name`` are its own."""

    root: str
    name: str
    space: SpaceWatch | None = None

    def build(
        self, image: Image, on_vertex: OnVertex | None = None, on_transfer: OnTransfer | None = None
    ) -> Outcome:
        """Not to be called: nobody asks for an image that is there."""
        raise NotImplementedError(image.tag, on_vertex, on_transfer)

    def repeat(self, image: Image) -> str:
        """What does the same again."""
        axes = ",".join(f"{axis}={value}" for axis, value in image.cell.values().items())
        return f"gpulayers build {' '.join(f'--only {each}' for each in axes.split(','))}"


def stage_of(vertex: str) -> str:
    """The stage that a piece of work belongs to, or "" (``[cuda-wheels-1a2b3c4d 1/1] RUN …``)."""
    match = STAGE.match(vertex)
    return match["stage"] if match is not None else ""


def broken_step(image: Image, failure: StepFailure, tools: Step) -> Step | None:
    """The step that failed; None where it was none of a layer's."""
    stage = stage_of(failure.step)
    for step in (*image.steps, tools):
        if stage == step.stage or stage.startswith(f"{step.stage}-"):
            return step
    return None


def failed_step(image: Image, failure: StepFailure, tools: Step) -> str:
    """The name of the step that failed, or the builder's own words where it was none of ours."""
    step = broken_step(image, failure, tools)
    return step.name if step is not None else stage_of(failure.step) or failure.step


def failure(image: Image, said: StepFailure, *, cls: str, tools: Step, repeat: str) -> Failure:
    """Why the build failed, by class."""
    kind = KINDS[cls]
    place = failed_step(image, said, tools)
    return Failure(
        blocks=kind.word,
        cls=cls,
        step="push" if kind.word == "push" and place.startswith(PUSH_WORK) else place or CLIENT,
        exit=said.exit,
        stderr_tail=said.lines,
        repeat=repeat,
    )


def class_of(image: Image, said: StepFailure, *, tools: Step, space: SpaceWatch | None) -> str:
    """The class of a failed build; a check inside it is a step like others, with its own class."""
    cls = classify(said, disk_is_full=space is not None and space.was_full())
    if failed_step(image, said, tools) != IDENTITY or cls != "build-step-failed":
        return cls
    is_double = any(line.startswith(DUPLICATES) for line in said.lines)
    return "duplicate-content" if is_double else "identity-mismatch"


def trouble(error: GpulayersError, repeat: str) -> Failure:
    """Why an image that the builder had no trouble with was not gated, or not given its tags."""
    cls = "push-failed"
    if isinstance(error, RegistryError):
        cls = OF_REGISTRY.get(error.trouble, cls)
    elif isinstance(error, ToolError):
        cls = "engine-lost"
    return Failure(
        blocks=KINDS[cls].word,
        cls=cls,
        step="push" if KINDS[cls].word == "push" else "engine",
        exit=0,
        stderr_tail=tuple(str(error).splitlines()) or (type(error).__name__,),
        repeat=repeat,
    )


def with_patience(
    build: Callable[[], Outcome],
    judge: Callable[[StepFailure], str],
    again: Callable[[str, float], bool],
) -> tuple[Outcome, str]:
    """Build, once more where the failure may pass by itself; the outcome and its class.

    Shape: ``again`` hears the class and how long to wait, waits, and says whether to go on. A
    step that failed is never tried again, nor is a layer that was too big.
    """
    outcome, cls = _judged(build(), judge)
    for pause_s in PAUSES_S:
        if not cls or not KINDS[cls].may_pass or not again(cls, pause_s):
            break
        outcome, cls = _judged(build(), judge)
    return outcome, cls


def _judged(outcome: Outcome, judge: Callable[[StepFailure], str]) -> tuple[Outcome, str]:
    return outcome, judge(outcome.failure) if outcome.failure is not None else ""


def layers(image: Image, manifest: Manifest) -> tuple[Layer, ...]:
    """The layers of a built image with the steps that made them, lowest first."""
    steps = layer_steps(image, len(manifest.layers))
    return tuple(
        Layer(digest=blob.digest, size_bytes=blob.size_bytes, step=step)
        for blob, step in zip(manifest.layers, steps, strict=True)
    )
