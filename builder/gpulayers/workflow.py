"""The main job: which images are there already, which are built, gated, and given their tags."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from gpulayers import build, classes, gates, promotion, publish, standing
from gpulayers.assembly import Assembly
from gpulayers.build import Builder, NothingToBuild
from gpulayers.engine import process
from gpulayers.engine.buildx import Outcome, StepFailure, Transfer, Vertex
from gpulayers.engine.registry import Manifest, Registry
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.errors import GpulayersError, ProjectError
from gpulayers.failure import is_login_refused
from gpulayers.gates import Gatekeeper
from gpulayers.growth import Released
from gpulayers.history import History
from gpulayers.inside import Inside
from gpulayers.plan.model import Image, Plan, Step
from gpulayers.record import (
    Failure,
    Gate,
    GateName,
    ImageRecord,
    ImageStatus,
    Layer,
    Records,
    Report,
    no_gates,
)
from gpulayers.refs import ImageRef

BEFORE = "checked inside the build that made it"
# The gates that stop a push from inside the build, in their order there.
INSIDE: tuple[GateName, ...] = ("identity", "duplicates")
STOPPED = "the run was stopped"
# After an interrupt, for programs to end and containers to be removed.
STOP_S = 6.0
TAIL_LINES = 40


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
    _known_blobs: set[str] = field(default_factory=set)
    _new_bytes: dict[str, int] = field(default_factory=dict)
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
            pushed_bytes=sum(self._new_bytes.values()),
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
                self._count(self.registry.manifest(ref, refs[name].platform), new=False)

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
            return _interrupted(image)
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
        self.listener.state(image, _end_word(record), _end_text(record))
        return record

    def _made(self, image: Image, there: tuple[str, bool] | None) -> ImageRecord:
        if image.key in self._standing:
            return self._standing[image.key]
        if there is None:
            return self._built(image)
        digest, has_passed = there
        known = self.records.read_gates(digest) if has_passed else None
        return self._gated(image, digest, status="cached", inside=_inside(BEFORE), known=known)

    def _built(self, image: Image) -> ImageRecord:
        blocked = self._blocked(image)
        if blocked:
            return _record(image, status="not-tried", gates=no_gates("not-tried", blocked))
        if image.cell.model in self.missing:
            return self._without_model(image)
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
            return self._gated(image, outcome.digest, status="built", inside=_inside(""))
        if self._stop.is_set():
            return _interrupted(image)
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
            return None if put is None else _interrupted(image)
        for name, gate in put.inside.items():
            if gate.status == "failed":
                return self._refused_inside(image, name, put.inside)
        # Not before: under this tag it would count as one that was checked in its build.
        self.registry.put_manifest(self._ref(image.staging), put.raw, OCI_MANIFEST)
        inside: dict[GateName, Gate] = dict(put.inside.items())
        return self._gated(image, put.ref.digest, status="built", inside=inside, is_new=False)

    def _step_alone(self, assembly: Assembly, image: Image, step: Step) -> ImageRecord | None:
        """Have a step built; what became of the image where that failed."""
        with assembly.alone(step):
            blocked = self._blocked(image)
            if blocked:
                return _record(image, status="not-tried", gates=no_gates("not-tried", blocked))
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
                return _interrupted(image)
            if outcome.failure is not None:
                return self._broken(image, outcome.failure, cls)
            digest, size_bytes = assembly.size_of(image, step)
        with self._lock:
            is_new = digest not in self._known_blobs
            self._new_bytes.update({digest: size_bytes} if is_new else {})
            self._known_blobs.add(digest)
        self.listener.sent(image, size_bytes if is_new else 0)
        return None

    def _refused_inside(
        self, image: Image, name: Inside, inside: Mapping[Inside, Gate]
    ) -> ImageRecord:
        failure = Failure(
            blocks=name,
            cls=inside[name].cls,
            step=name,
            exit=1,
            stderr_tail=tuple(inside[name].text.split("; "))[-TAIL_LINES:],
            repeat=self.builder.repeat(image),
        )
        found = no_gates("not-built", f"no tag: {name} failed") | dict(inside)
        return _record(image, status="failed", gates=found, failure=failure)

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

    def _blocked(self, image: Image) -> str:
        """Why an image need not be started, or ""."""
        if self._stop.is_set():
            return "the run was stopped before it was started"
        with self._lock:
            steps = (*image.steps, image.tools)
            broken = [step.name for step in steps if step.stage in self._failed_stages]
        return f"it needs step {broken[0]}, which failed" if broken else ""

    def _broken(self, image: Image, said: StepFailure, cls: str) -> ImageRecord:
        repeat = self.builder.repeat(image)
        failure = build.failure(image, said, cls=cls, tools=self.plan.tools, repeat=repeat)
        broken = build.broken_step(image, said, self.plan.tools)
        if failure.blocks == "build" and broken is not None:
            with self._lock:
                self._failed_stages.add(broken.stage)
        reason = f"not built: step {failure.step} failed"
        found = no_gates("not-built", reason)
        for word in INSIDE:
            if failure.blocks == word:
                lines = [line for line in failure.stderr_tail if line.startswith(f"{word}:")]
                text = "; ".join(lines) or failure.stderr_tail[-1]
                found[word] = Gate(status="failed", cls=failure.cls, text=text, seconds=0.0)
        return _record(image, status="failed", gates=found, failure=failure)

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
        self.listener.sent(image, self._count(manifest, new=is_new and status == "built"))
        if known is None:
            self.listener.state(image, "gates")
            found = self.keeper.judge(image, ref, manifest, inside, self._released(image, digest))
        else:
            # Limits are not those of the day on which it was built.
            size = self.keeper.size(image, manifest, self._released(image, digest))
            found = dict(known) | ({"size": size} if size.status != known["size"].status else {})
        if self._stop.is_set():  # what they said may come from being stopped; no tag moves now
            found = no_gates("interrupted", STOPPED)
        record = _record(
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
            return self._refused(image, record, *stopped)
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

    def _count(self, manifest: Manifest, *, new: bool) -> int:
        """Take note of an image's layers; the bytes of those that are new in this run."""
        sizes = {blob.digest: blob.size_bytes for blob in manifest.layers}
        with self._lock:
            found = {d: s for d, s in sizes.items() if new and d not in self._known_blobs}
            self._new_bytes.update(found)
            self._known_blobs.update(sizes)
        return sum(found.values())

    def _refused(self, image: Image, record: ImageRecord, word: str, gate: Gate) -> ImageRecord:
        failure = Failure(
            blocks=classes.word_of(gate.cls, word),
            cls=gate.cls,
            step=word,
            exit=0,
            stderr_tail=tuple((gate.text or gate.cls).split("; "))[-TAIL_LINES:],
            repeat=f"gpulayers test {record.ref}"
            if word == "smoke"
            else self.builder.repeat(image),
        )
        return replace(record, status="failed", failure=failure)

    def _promoted(self, record: ImageRecord) -> tuple[str, ...]:
        if not self.wish.channel:
            return ()
        target = promotion.Target(channel=self.wish.channel, channels=self.wish.channels)
        journal = promotion.Journal(history=self.history, who="build", now=datetime.now(UTC))
        done = promotion.carry(self.registry, [record], target, journal)
        return tuple(ref.rpartition(":")[2] for carried in done for ref in carried.refs)

    def _without_model(self, image: Image) -> ImageRecord:
        name = image.cell.model
        lines = self.missing[name].splitlines()
        failure = Failure(
            blocks="push",
            cls="model-not-fetched",
            step=f"model-{name}",
            exit=0,
            stderr_tail=tuple(lines),
            repeat=f"gpulayers build --only model={name}",
        )
        gates = no_gates("not-built", f"not built: model {name} could not be fetched")
        return _record(image, status="failed", gates=gates, failure=failure)

    def _trouble(self, image: Image, error: GpulayersError) -> ImageRecord:
        if self._stop.is_set():
            return _interrupted(image)
        failure = build.trouble(error, self.builder.repeat(image))
        return _record(
            image, status="failed", gates=no_gates("not-reached", str(error)), failure=failure
        )


def _inside(text: str) -> dict[GateName, Gate]:
    """The gates that an image passed, or it would not have been pushed."""
    return {name: Gate(status="passed", cls="", text=text, seconds=0.0) for name in INSIDE}


def _interrupted(image: Image) -> ImageRecord:
    return _record(image, status="not-tried", gates=no_gates("interrupted", STOPPED))


def _content_tag(image: Image) -> str:
    return f"{image.tag}-{image.key12}"


def _record(
    image: Image,
    *,
    status: ImageStatus,
    gates: Mapping[GateName, Gate],
    ref: ImageRef | None = None,
    layers: Sequence[Layer] = (),
    failure: Failure | None = None,
) -> ImageRecord:
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


def _end_word(record: ImageRecord) -> str:
    return "failed" if record.failure is not None else record.status


def _end_text(record: ImageRecord) -> str:
    if record.failure is not None:
        return f"{record.failure.cls} in {record.failure.step}"
    return ", ".join(f"{name} {gate.status}" for name, gate in record.gates.items())
