"""How far a build has come: images, steps, bytes and time left, from what the builder says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpulayers.assembly import STEP_COST
from gpulayers.build import stage_of
from gpulayers.engine.buildx import Transfer, Vertex
from gpulayers.plan.model import Image, Plan, Step

MB = 10**6
THERE = ("done", "cached")
ENDS = ("built", "cached", "failed", "not-tried")
# Copies of steps into the image are no work of their own.
COPY = "/out/ /"
# What an image costs for its export, push and gates, in bytes.
IMAGE_COST = 60 * MB
# Before so much of the work and time, nobody can say how long the rest will take.
LEAST_SHARE = 0.1
LEAST_S = 5.0
_PART = re.compile(r"^\[[^]]*\s(?P<part>\d+)/(?P<parts>\d+)\]")
StepState = Literal["running", "done", "cached"]


@dataclass(slots=True)
class Shown:
    """What is known of one image.

    Shape: ``state`` is ``waiting``, ``building``, ``gates`` or one of ``ENDS``.
    Units: ``since_s`` on the clock of the calls.
    """

    tag: str
    state: str = "waiting"
    detail: str = ""
    since_s: float = 0.0


@dataclass(slots=True)
class Tally:
    """The count of one run; times come from outside, so that it is the same each time."""

    plan: Plan
    begin_s: float
    images: dict[str, Shown] = field(default_factory=dict)
    stages: dict[str, StepState] = field(default_factory=dict)
    sent_bytes: int = 0
    _names: Mapping[str, str] = field(default_factory=dict)
    _downloads: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.images = {image.target: Shown(tag=image.tag) for image in self.plan.images}
        self._names = {step.stage: step.name for step in self.plan.steps}

    def state(self, image: Image, state: str, detail: str, now_s: float) -> None:
        """An image is in another state."""
        shown = self.images[image.target]
        shown.state, shown.detail, shown.since_s = state, detail, now_s

    def work(self, image: Image, vertex: Vertex, now_s: float) -> tuple[str, StepState] | None:
        """A piece of work went on; the step and its new state, once for all images that share it.

        Shape: None where nothing is new, or it is no step of ours.
        """
        stage = stage_of(vertex.name)
        name = self._names.get(stage)
        if name is None or vertex.name.endswith(COPY):
            return None
        state = _step_state(vertex)
        if state is None or self.stages.get(stage) in {state, *THERE}:
            return None
        self.stages[stage] = state
        if state == "running":
            self.state(image, "building", name, now_s)
        return name, state

    def transfer(self, transfer: Transfer) -> None:
        """Bytes came; what several images wait for comes once."""
        if transfer.id.startswith("sha256:"):
            so_far = self._downloads.get(transfer.id, 0)
            self._downloads[transfer.id] = max(so_far, transfer.current_bytes)

    @property
    def downloaded_bytes(self) -> int:
        """Bytes of layers of bases and caches."""
        return sum(self._downloads.values())

    def steps_of(self, image: Image) -> tuple[int, int]:
        """How many of an image's steps are there, of how many."""
        return sum(self._is_there(step) for step in image.steps), len(image.steps)

    def _is_there(self, step: Step) -> bool:
        return self.stages.get(step.stage) in THERE

    def share(self) -> float:
        """How much of the work is done, from 0 to 1; what was there before is no work."""
        images = [i for i in self.plan.images if self.images[i.target].state != "cached"]
        steps = {step.stage: step for image in images for step in image.steps}.values()
        total = sum(step.size_bytes + STEP_COST for step in steps) + IMAGE_COST * len(images)
        done = sum(step.size_bytes + STEP_COST for step in steps if self._is_there(step))
        done += IMAGE_COST * sum(self.images[i.target].state in ENDS for i in images)
        return done / total if total else 1.0

    def left_s(self, now_s: float) -> float | None:
        """Seconds that are left if it goes on like this, or None where that is not known yet."""
        share, spent = self.share(), now_s - self.begin_s
        if share < LEAST_SHARE or spent < LEAST_S:
            return None
        return spent * (1 - share) / share

    def overall(self, now_s: float) -> str:
        """All of it in one line."""
        done = sum(self._is_there(step) for step in self.plan.steps)
        ended = [shown.state for shown in self.images.values() if shown.state in ENDS]
        failed = ended.count("failed")
        parts = [
            f"images {len(ended)}/{len(self.images)}{f' ({failed} failed)' if failed else ''}",
            f"steps {done}/{len(self.plan.steps)}",
        ]
        if self.downloaded_bytes:
            parts.append(f"{megabytes(self.downloaded_bytes)} downloaded")
        if self.sent_bytes:
            parts.append(f"{megabytes(self.sent_bytes)} pushed")
        left = self.left_s(now_s)
        is_over = len(ended) == len(self.images)
        about = "" if left is None or is_over else f", about {clock(left)} left"
        return " · ".join([*parts, f"{clock(now_s - self.begin_s)}{about}"])


def _step_state(vertex: Vertex) -> StepState | None:
    """A step is done with its stage's last part; its first one says that it runs."""
    part = _PART.match(vertex.name)
    is_last = part is not None and part["part"] == part["parts"]
    if vertex.error:
        return None
    if vertex.cached:
        return "cached" if is_last else None
    if vertex.completed:
        return "done" if is_last else None
    return "running" if vertex.started else None


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are some."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def megabytes(size_bytes: int) -> str:
    """Compressed bytes as people read them; MB = 10^6."""
    return f"{size_bytes / MB:,.1f} MB"
