"""Images out of steps that are there: what is missing is built alone, the rest is put together."""

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from gpulayers import logs
from gpulayers.build import Builder
from gpulayers.compose import Composer
from gpulayers.engine.buildx import OnTransfer, OnVertex, Outcome
from gpulayers.engine.registry import Manifest
from gpulayers.errors import GpulayersError
from gpulayers.inside import Checks, Inside
from gpulayers.plan.model import Image, Step
from gpulayers.record import Gate
from gpulayers.refs import ImageRef

# Putting together pays where at least this share of an image is there.
LEAST_SHARE = 0.5
# What a step costs beside its bytes, in bytes.
STEP_COST = 20 * 10**6
WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An image that was put together, looked at from inside; no tag points at it.

    Shape: ``inside`` are the gates that a build has in it, up to the first that failed.
    """

    ref: ImageRef
    raw: bytes
    inside: dict[Inside, Gate]


@dataclass(slots=True)
class Assembly:
    """Puts images together, for one run; may be used from any thread.

    Shape: ``write_step`` writes the Dockerfile of one step of an image and returns its name below
    the rendered files.
    """

    composer: Composer
    checks: Checks
    builder: Builder
    write_step: Callable[[Image, Step], str]
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def held(self, images: Collection[Image]) -> frozenset[str]:
        """The keys of these images' steps that need not be built.

        Raises: RegistryError: the registry cannot be asked.
        """
        steps = {step.key: (image, step) for image in images for step in image.steps}
        with ThreadPoolExecutor(WORKERS) as pool:
            found = pool.map(lambda pair: self.has(*pair), steps.values())
            return frozenset(key for key, has in zip(steps, found, strict=True) if has)

    def lacking(self, image: Image) -> tuple[Step, ...] | None:
        """The steps to be built before an image can be put together; None: it is to be built whole.

        Raises: RegistryError: the registry cannot be asked.
        """
        if not self.composer.is_able(image):
            return None
        missing = set(self.composer.missing(image))
        steps = tuple(step for step in image.steps if step.key in missing)
        # The base is there in any case.
        is_little = _weight(steps) <= LEAST_SHARE * (_weight(image.steps) + STEP_COST)
        return steps if len(steps) == len(missing) and is_little else None

    @contextmanager
    def alone(self, step: Step) -> Iterator[None]:
        """While one image has a step built, others that need it wait."""
        with self._lock:
            lock = self._locks.setdefault(step.key, threading.Lock())
        with lock:
            yield

    def has(self, image: Image, step: Step) -> bool:
        """Whether the registry has a step by now."""
        return self.composer.parts.find(step.key, image.platform, afresh=True) is not None

    def build(
        self, image: Image, step: Step, on_vertex: OnVertex, on_transfer: OnTransfer
    ) -> Outcome:
        """Build one step alone, and push it to where steps are."""
        ref = self.composer.parts.ref(step.key)
        file = self.write_step(image, step)
        return self.builder.build_step(image, step, file, ref.format(), on_vertex, on_transfer)

    def size_of(self, image: Image, step: Step) -> tuple[str, int]:
        """Digest and bytes of the layer of a step that the registry has."""
        held = self.composer.parts.find(step.key, image.platform, afresh=True)
        return (held.layer.digest, held.layer.size_bytes) if held is not None else ("", 0)

    def put(self, image: Image) -> Put | None:
        """Put an image together and look at it from inside; None: it has to be built.

        Raises: RegistryError: the registry could not be asked, or did not take it; ToolError,
            RemoteError: nobody could look at it from inside.
        """
        made = self.composer.compose(image)
        if made is None:
            return None
        ref = ImageRef.parse(f"{self.builder.root}/{self.builder.name}").with_digest(made.digest)
        title = f"image {image.tag}, key {image.key}: put together out of steps that were there"
        with logs.keep(self.builder.logs, image.tag, title) as log:
            for step in image.steps:
                log.line(f"{step.name}: {self.size_of(image, step)[0]}")
            inside = self.checks.judge(image, ref)
            failed = [f"{name}: {one.text}" for name, one in inside.items() if one.cls]
            for line in failed:
                log.line(line)
            log.end("failed" if failed else "built", f"in {failed[0]}" if failed else made.digest)
        return Put(ref=ref, raw=made.raw, inside=inside)

    def learn(self, image: Image, manifest: Manifest) -> None:
        """Take note of the steps of an image that was built; that it fails harms nothing now."""
        ref = ImageRef.parse(f"{self.builder.root}/{self.builder.name}")
        with suppress(GpulayersError):
            config = self.composer.registry.config(ref.with_digest(manifest.digest), manifest)
            self.composer.note(image, manifest, config)


def _weight(steps: Collection[Step]) -> int:
    return sum(step.size_bytes + STEP_COST for step in steps)
