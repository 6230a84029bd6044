"""Building one image: one call, its digest in the registry, or the reason why not."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers import logs
from gpulayers.engine.buildx import Buildx, Outcome, Secret, StepFailure, Vertex
from gpulayers.engine.registry import Manifest
from gpulayers.inputs import Inputs
from gpulayers.inputs.given import Given
from gpulayers.plan.model import IDENTITY, Image, Step
from gpulayers.record import Failure, Layer
from gpulayers.render import mounts
from gpulayers.render.bake import COMPRESSION
from gpulayers.render.files import BAKE_FILE

STAGE = re.compile(r"^\[(?:\S+ )?(?P<stage>[a-z0-9][a-z0-9.-]*)\s+\d+/\d+\]")
PUSH_WORK = ("exporting to image", "pushing", "exporting manifest")
BASE_GONE = ("not found", "manifest unknown")
TIMEOUT_S = 3 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What images are built with.

    Shape: ``rendered`` is the folder of the bake file; ``logs`` that of the kept logs, or None;
    ``given`` are the secrets that the layers ask for.
    """

    buildx: Buildx
    rendered: Path
    project: Path
    root: str
    name: str
    inputs: Inputs
    logs: Path | None = None
    given: tuple[Given, ...] = ()

    def staging(self, image: Image) -> str:
        """Where an image waits for its gates."""
        return f"{self.root}/{self.name}:staging-{image.key12}"

    def build(self, image: Image, on_vertex: Callable[[Vertex], None] | None = None) -> Outcome:
        """Build and push to the staging reference; nothing is pushed when the identity is wrong."""
        output = f"type=image,name={self.staging(image)},push=true,unpack=false,store=false"
        settings = [f"output={output},{COMPRESSION}"]
        if self.inputs.ca is not None:
            settings.append(f"secrets+={Secret(id='ca', source=self.inputs.ca).format()}")
        title = f"image {image.tag}, key {image.key}; again: {self.repeat(image)}"
        with logs.keep(self.logs, image.tag, title) as log:
            outcome = self.buildx.bake(
                self.rendered / BAKE_FILE,
                image.target,
                settings=settings,
                variables={**self._variables(self.inputs.folder), **self.inputs.proxies},
                timeout_s=TIMEOUT_S,
                on_vertex=on_vertex,
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


def stage_of(vertex: str) -> str:
    """The stage that a piece of work belongs to, or "" (``[cuda-wheels-1a2b3c4d 1/1] RUN …``)."""
    match = STAGE.match(vertex)
    return match["stage"] if match is not None else ""


def failed_step(image: Image, failure: StepFailure, tools: Step) -> str:
    """The name of the step that failed, or the builder's own words where it was none of ours."""
    stage = stage_of(failure.step)
    for step in (*image.steps, tools):
        if stage == step.stage or stage.startswith(f"{step.stage}-"):
            return step.name
    return stage or failure.step


def failure(image: Image, said: StepFailure, *, tools: Step, repeat: str) -> Failure:
    """Why the build failed, by class: identity, push, base, time-out, or a step."""
    step = failed_step(image, said, tools)
    blocks, cls = _class(said, step)
    return Failure(
        blocks=blocks, cls=cls, step=step, exit=said.exit, stderr_tail=said.lines, repeat=repeat
    )


def _class(said: StepFailure, step: str) -> tuple[str, str]:
    text = "\n".join(said.lines)
    if step == IDENTITY:
        return "identity", "identity-mismatch"
    if said.step.startswith(PUSH_WORK):
        return "push", "push-failed"
    if said.step.startswith("[context") and any(word in text for word in BASE_GONE):
        return "push", "base-gone"
    if "no space left on device" in text:
        return "build", "disk-full"
    if said.step == "(time-out)":
        return "build", "build-timeout"
    return "build", "build-step-failed"


def layers(image: Image, manifest: Manifest) -> tuple[Layer, ...]:
    """The layers of a built image with the steps that made them, lowest first."""
    names = list(image.layer_names)
    of_base = len(manifest.layers) - len(names)
    steps = ["base"] * of_base + names
    return tuple(
        Layer(digest=blob.digest, size_bytes=blob.size_bytes, step=step)
        for blob, step in zip(manifest.layers, steps[max(0, -of_base) :], strict=False)
    )
