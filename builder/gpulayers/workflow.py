"""The main job: which images are there already, which are built, gated, and given their tags."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from gpulayers import build, gates, outcomes, promotion, publish, standing
from gpulayers.assembly import Assembly
from gpulayers.build import Builder, NothingToBuild
from gpulayers.engine import process
from gpulayers.engine.buildx import Outcome, StepFailure, Transfer, Vertex
from gpulayers.engine.registry import Registry
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.errors import GpulayersError, ProjectError
from gpulayers.failure import is_login_refused
from gpulayers.gates import Gatekeeper
from gpulayers.growth import Released
from gpulayers.history import History
from gpulayers.plan.model import Image, Plan, Step
from gpulayers.record import Gate, GateName, ImageRecord, ImageStatus, Records, Report, no_gates
from gpulayers.refs import ImageRef
from gpulayers.sent import Sent

BEFORE = "checked inside the build that made it"
# After an interrupt, for programs to end and containers to be removed.
STOP_S = 6.0


class Listener(Protocol):
    """Who is told how it goes; called from many threads."""

    def state(self, image: Image, state: str, detail: str = "") -> None:
        """An image is now in that state (``building``, ``gates``, then an end word)."""

    def work(self, image: Image, vertex: Vertex) -> None:
        """A piece of the build of an image started, ended, or was found in the cache."""

    def transfer(self, image: Image, transfer: Transfer) -> None:
        """Bytes for the build of an image came."""

    def sent(self, image: Image, size_bytes: int) -> None:
        """The registry has layers of an image that it did not have before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a run is asked for.

    Shape: ``channel`` is the one whose tags move, "" for none (``--no-push``).
    """

    channel: str
    channels: tuple[str, ...]
    jobs: int
    fail_fast: bool
    accepts_no_scan: bool


@dataclass(slots=True)
class Run:
    """One run over the images of a plan.

    Shape: ``missing`` has the models whose files could not be had, with the reason.
    """

    plan: Plan
    builder: Builder | NothingToBuild
    keeper: Gatekeeper
    registry: Registry
    records: Records
    history: History
    listener: Listener
    wish: Wish
    engine: Mapping[str, str]
    assembly: Assembly | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    _standing: Mapping[str, ImageRecord] = field(default_factory=dict)
    _failed_stages: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _sent: Sent = field(default_factory=Sent)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def go(self, there: Mapping[str, tuple[str, bool]]) -> Report:
        """Make the images that are not ``there``, gate and tag all; a failure stops no other."""
        started, begin = datetime.now(UTC), time.monotonic()
        passed = {key: digest for key, (digest, has_passed) in there.items() if has_passed}
        self._standing = standing.known(self._place(), passed, self.plan.images)
        if len(self._standing) < len(self.plan.images):
            self._learn_blobs()
        done, interrupted = self._all(there)
        return Report(
            started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=time.monotonic() - begin,
            engine=self.engine,
            images=done,
            pushed_bytes=self._sent.size_bytes,
            interrupted=interrupted,
        )

    def there(self) -> dict[str, tuple[str, bool]]:
        """Image key to digest and whether it has passed its gates, for those in the registry.

        Raises: RemoteError: the registry cannot be asked what it has.
        """
        passed = self._resolved({i.key: self._ref(_content_tag(i)) for i in self.plan.images})
        others = (image for image in self.plan.images if image.key not in passed)
        waiting = self._resolved({i.key: self._ref(i.staging) for i in others})
        return {
            **{key: (digest, True) for key, digest in passed.items()},
            **{key: (digest, False) for key, digest in waiting.items()},
        }

    def _resolved(self, refs: Mapping[str, ImageRef]) -> dict[str, str]:
        """Key to digest, for the references that the registry has."""
        digests = self.registry.resolve_many(refs.values())
        found = {key: digests[ref.format()] for key, ref in refs.items()}
        return {key: digest for key, digest in found.items() if digest}

    def unfinished(self, there: Mapping[str, tuple[str, bool]]) -> tuple[Image, ...]:
        """The images that are to be built or judged: what is there is not all that is wanted."""
        return tuple(
            image
            for image in self.plan.images
            if not (found := there.get(image.key, ("", False)))[1]
            or self.records.read_gates(found[0]) is None
        )

    def _place(self) -> standing.Place:
        return standing.Place(
            repository=ImageRef.parse(f"{self.builder.root}/{self.builder.name}"),
            registry=self.registry,
            records=self.records,
            channel=self.wish.channel,
            channels=self.wish.channels,
            budget=self.keeper.budget,
        )

    def _learn_blobs(self) -> None:
        """Take note of the layers that the registry holds for the images' moving tags."""
        if not self.wish.channel:
            return
        refs = {}
        for image in self.plan.images:
            tags = publish.tags_for(image.tag, self.wish.channel, image.key12, self.wish.channels)
            refs[self._ref(tags[-1]).format()] = image
        for name, digest in self.registry.resolve_many([*map(ImageRef.parse, refs)]).items():
            if digest is not None:
                ref = ImageRef.parse(name).with_digest(digest)
                self._sent.count(self.registry.manifest(ref, refs[name].platform), new=False)

    def _ref(self, tag: str) -> ImageRef:
        return ImageRef.parse(f"{self.builder.root}/{self.builder.name}:{tag}")

    def _all(self, there: Mapping[str, tuple[str, bool]]) -> tuple[tuple[ImageRecord, ...], bool]:
        pool = ThreadPoolExecutor(max(1, self.wish.jobs))
        futures: dict[str, Future[ImageRecord]] = {}
        is_interrupted = True
        try:
            for image in self.plan.images:
                futures[image.key] = pool.submit(self._one, image, there.get(image.key))
            for future in futures.values():
                future.result()
            is_interrupted = False
        except KeyboardInterrupt:
            self._stop.set()
            process.stop()
            wait(futures.values(), timeout=STOP_S)
        finally:
            pool.shutdown(wait=not self._stop.is_set(), cancel_futures=True)
        return tuple(self._settled(x, futures.get(x.key)) for x in self.plan.images), is_interrupted

    def _settled(self, image: Image, future: "Future[ImageRecord] | None") -> ImageRecord:
        """What became of an image; after an interrupt, not all of them have come to an end."""
        if future is None or not future.done() or future.cancelled() or future.exception():
            return outcomes.interrupted(image)
        return future.result()

    def _one(self, image: Image, there: tuple[str, bool] | None) -> ImageRecord:
        try:
            record = self._made(image, there)
        except ProjectError:
            raise
        except GpulayersError as error:
            record = self._trouble(image, error)
        if record.failure is not None and self.wish.fail_fast:
            self._stop.set()
            process.end_all()
        if record.digest and image.key not in self._standing:
            self.records.write(record)
        self.listener.state(image, outcomes.word(record), outcomes.text(record))
        return record

    def _made(self, image: Image, there: tuple[str, bool] | None) -> ImageRecord:
        if image.key in self._standing:
            return self._standing[image.key]
        if there is None:
            return self._built(image)
        digest, has_passed = there
        known = self.records.read_gates(digest) if has_passed else None
        return self._gated(
            image, digest, status="cached", inside=outcomes.inside(BEFORE), known=known
        )

    def _built(self, image: Image) -> ImageRecord:
        blocked = self._blocked(image)
        if blocked:
            return outcomes.not_tried(image, blocked)
        if image.cell.model in self.missing:
            return outcomes.without_model(image, self.missing[image.cell.model])
        self.listener.state(image, "building")
        put = self._put_together(image)
        if put is not None:
            return put
        outcome, cls = build.with_patience(
            lambda: self._call(image),
            lambda said: self._class(image, said),
            lambda cls, pause_s: self._waited(image, cls, pause_s),
        )
        if outcome.failure is None:
            if self.assembly is not None:
                ref = self._ref(image.staging).with_digest(outcome.digest)
                self.assembly.learn(image, self.registry.manifest(ref, image.platform))
            return self._gated(image, outcome.digest, status="built", inside=outcomes.inside(""))
        if self._stop.is_set():
            return outcomes.interrupted(image)
        return self._broken(image, outcome.failure, cls)

    def _put_together(self, image: Image) -> ImageRecord | None:
        """An image out of steps that the registry has, or None where it is to be built whole."""
        if self.assembly is None:
            return None
        steps = self.assembly.lacking(image)
        if steps is None:
            return None
        for step in steps:
            stopped = self._step_alone(self.assembly, image, step)
            if stopped is not None:
                return stopped
        put = self.assembly.put(image)
        if put is None or self._stop.is_set():
            return None if put is None else outcomes.interrupted(image)
        refused = outcomes.refused_inside(image, put.inside, self.builder.repeat(image))
        if refused is not None:
            return refused
        # Not before: under this tag it would count as one that was checked in its build.
        self.registry.put_manifest(self._ref(image.staging), put.raw, OCI_MANIFEST)
        inside: dict[GateName, Gate] = dict(put.inside.items())
        return self._gated(image, put.ref.digest, status="built", inside=inside, is_new=False)

    def _step_alone(self, assembly: Assembly, image: Image, step: Step) -> ImageRecord | None:
        """Have a step built; what became of the image where that failed."""
        with assembly.alone(step):
            blocked = self._blocked(image)
            if blocked:
                return outcomes.not_tried(image, blocked)
            if assembly.has(image, step):
                return None
            outcome, cls = build.with_patience(
                lambda: assembly.build(
                    image,
                    step,
                    lambda vertex: self.listener.work(image, vertex),
                    lambda transfer: self.listener.transfer(image, transfer),
                ),
                lambda said: self._class(image, said),
                lambda cls, pause_s: self._waited(image, cls, pause_s),
            )
            if self._stop.is_set():
                return outcomes.interrupted(image)
            if outcome.failure is not None:
                return self._broken(image, outcome.failure, cls)
            digest, size_bytes = assembly.size_of(image, step)
        self.listener.sent(image, self._sent.count_layers({digest: size_bytes}, new=True))
        return None

    def _call(self, image: Image) -> Outcome:
        return self.builder.build(
            image,
            lambda vertex: self.listener.work(image, vertex),
            lambda transfer: self.listener.transfer(image, transfer),
        )

    def _class(self, image: Image, said: StepFailure) -> str:
        cls = build.class_of(image, said, tools=self.plan.tools, space=self.builder.space)
        if cls == "auth-denied" and is_login_refused(said) and self._may_push():
            return "auth-expired"
        return cls

    def _may_push(self) -> bool:
        """Whether the login that a push was refused with is good when asked for anew."""
        with suppress(GpulayersError):
            return self.registry.can_push(f"{self.builder.root}/{self.builder.name}")
        return False

    def _waited(self, image: Image, cls: str, pause_s: float) -> bool:
        """Wait before an image is tried again; False when the run is stopped meanwhile."""
        self.listener.state(image, "building", f"again in {pause_s:.0f} s, after {cls}")
        return not self._stop.wait(pause_s)

    def _broken(self, image: Image, said: StepFailure, cls: str) -> ImageRecord:
        repeat = self.builder.repeat(image)
        record, step = outcomes.broken(image, said, cls=cls, tools=self.plan.tools, repeat=repeat)
        if step is not None:
            with self._lock:
                self._failed_stages.add(step.stage)
        return record

    def _blocked(self, image: Image) -> str:
        """Why an image need not be started, or ""."""
        if self._stop.is_set():
            return "the run was stopped before it was started"
        with self._lock:
            steps = (*image.steps, image.tools)
            broken = [step.name for step in steps if step.stage in self._failed_stages]
        return f"it needs step {broken[0]}, which failed" if broken else ""

    def _gated(
        self,
        image: Image,
        digest: str,
        *,
        status: ImageStatus,
        inside: Mapping[GateName, Gate],
        known: Mapping[GateName, Gate] | None = None,
        is_new: bool = True,
    ) -> ImageRecord:
        ref = self._ref(image.staging).with_digest(digest)
        manifest = self.registry.manifest(ref, image.platform)
        self.listener.sent(image, self._sent.count(manifest, new=is_new and status == "built"))
        if known is None:
            self.listener.state(image, "gates")
            found = self.keeper.judge(image, ref, manifest, inside, self._released(image, digest))
        else:
            # Limits are not those of the day on which it was built.
            size = self.keeper.size(image, manifest, self._released(image, digest))
            found = dict(known) | ({"size": size} if size.status != known["size"].status else {})
        if self._stop.is_set():  # what they said may come from being stopped; no tag moves now
            found = no_gates("interrupted", outcomes.STOPPED)
        record = outcomes.record(
            image,
            status=status,
            gates=found,
            ref=ref,
            layers=build.layers(image, manifest),
        )
        if self._stop.is_set():
            return record
        stopped = gates.blocking(found, accepts_no_scan=self.wish.accepts_no_scan)
        if stopped is not None:
            return outcomes.refused(record, *stopped, self.builder.repeat(image))
        return replace(record, tags=self._promoted(record))

    def _released(self, image: Image, digest: str) -> Released | None:
        """The image that was released last under its tag: of the highest channel that has one."""
        if self.keeper.budget.growth_mb is None:
            return None
        for channel in reversed(self.wish.channels):
            ref = self._ref(publish.tags_for(image.tag, channel, image.key, self.wish.channels)[-1])
            found = self.registry.resolve(ref)
            if found is not None and found != digest:
                manifest = self.registry.manifest(ref.with_digest(found), image.platform)
                labels = self.registry.config(ref.with_digest(found), manifest).labels
                return Released(tag=ref.tag, manifest=manifest, labels=labels)
        return None

    def _promoted(self, record: ImageRecord) -> tuple[str, ...]:
        if not self.wish.channel:
            return ()
        target = promotion.Target(channel=self.wish.channel, channels=self.wish.channels)
        journal = promotion.Journal(history=self.history, who="build", now=datetime.now(UTC))
        done = promotion.carry(self.registry, [record], target, journal)
        return tuple(ref.rpartition(":")[2] for carried in done for ref in carried.refs)

    def _trouble(self, image: Image, error: GpulayersError) -> ImageRecord:
        if self._stop.is_set():
            return outcomes.interrupted(image)
        return outcomes.trouble(image, error, self.builder.repeat(image))


def _content_tag(image: Image) -> str:
    return f"{image.tag}-{image.key12}"
