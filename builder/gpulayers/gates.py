"""The gates of one image after its build: size, scan, secrets, smoke, each with its own word."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers.engine.registry import Manifest
from gpulayers.errors import GpulayersError
from gpulayers.growth import Candidate, Released, excess
from gpulayers.matrix.model import Budget
from gpulayers.plan.model import Image, layer_steps
from gpulayers.publish import size_violations
from gpulayers.record import NO_BUDGET, Gate, GateName, not_run
from gpulayers.refs import ImageRef
from gpulayers.scan import gate as scan_gate
from gpulayers.scan.policy import Policy
from gpulayers.scan.scanner import Scanner
from gpulayers.smoke.model import Check, Level, SmokeReport
from gpulayers.smoke.run import Engine, Options, Subject
from gpulayers.smoke.run import run as run_smoke


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatekeeper:
    """What the gates ask.

    Shape: ``scanner`` is None where there is no Trivy that may be used, ``scan_trouble`` says why;
    ``slots`` bounds how many images are unpacked and run at once.
    """

    engine: Engine
    scanner: Scanner | None
    scan_trouble: str
    policy: Policy
    channel: str
    budget: Budget
    reports: Path
    levels: tuple[Level, ...]
    slots: threading.Semaphore

    def judge(
        self,
        image: Image,
        ref: ImageRef,
        manifest: Manifest,
        inside: Mapping[GateName, Gate],
        released: Released | None = None,
    ) -> dict[GateName, Gate]:
        """All gates of an image; a failed one does not keep the others from being asked.

        Shape: ``inside`` are those that were checked inside the build; ``released`` is the image
        that it would take the place of.
        """
        scan, secrets = self._scan(image, ref)
        return {
            "identity": inside["identity"],
            "secrets": secrets,
            "duplicates": inside["duplicates"],
            "size": self.size(image, manifest, released),
            "scan": scan,
            "smoke": self._smoke(image, ref),
        }

    def size(self, image: Image, manifest: Manifest, released: Released | None) -> Gate:
        """Whether an image is within the budget as it is today."""
        return _timed(lambda: self._size(image, manifest, released))

    def _size(self, image: Image, manifest: Manifest, released: Released | None) -> Gate:
        budget = self.budget
        over = list(size_violations(manifest, budget))
        if released is not None and budget.growth_mb is not None:
            steps = layer_steps(image, len(manifest.layers))
            new = Candidate(manifest=manifest, steps=steps, labels=image.config.labels)
            over.append(excess(new, released, growth_mb=budget.growth_mb))
        if any(over):
            text = "; ".join(filter(None, over))
            return Gate(status="failed", cls="over-budget", text=text, seconds=0.0)
        if not budget.has_limits:
            return not_run(NO_BUDGET, "matrix.toml has no limit in [budget]")
        first = budget.growth_mb is not None and released is None
        text = "nothing is released that it could have grown from" if first else ""
        return Gate(status="passed", cls="", text=text, seconds=0.0)

    def _scan(self, image: Image, ref: ImageRef) -> tuple[Gate, Gate]:
        if self.scanner is None:
            gate = not_run("scan-tool-missing", self.scan_trouble)
            return gate, gate
        try:
            raw = self.scanner.scan(ref, image.platform, reports=self.reports)
        except GpulayersError as error:
            gate = not_run("scan-failed", str(error))
            return gate, gate
        done = scan_gate.judged(raw, self.policy, self.channel)
        text = done.text
        if not text and done.report is not None:
            text = scan_gate.summary(done.report)
        gate = Gate(status=done.status, cls=done.cls, text=text, seconds=done.seconds)
        return gate, _secrets(done)

    def _smoke(self, image: Image, ref: ImageRef) -> Gate:
        try:
            report = self.smoke(image, ref)
        except GpulayersError as error:
            return not_run("engine-failed", str(error))
        return Gate(
            status=report.status.value,
            cls=report.cls.value,
            text=report.text,
            seconds=report.seconds,
        )

    def smoke(self, image: Image, ref: ImageRef) -> SmokeReport:
        """What the image's own checks say, run in containers.

        Raises: ToolError: no engine answers.
        """
        subject = Subject(
            image=ref, platform=image.platform, cell=image.cell.values(), wheels=image.wheels
        )
        with self.slots:
            return run_smoke(
                self.engine, subject, checks_of(image), options=Options(levels=self.levels)
            )


def checks_of(image: Image) -> tuple[Check, ...]:
    """The smoke scripts that an image inherits, lowest layer first."""
    return tuple(
        Check(
            layer=path.parent.parent.name,
            name=path.name,
            level=level,
            text=path.read_text(encoding="utf-8"),
        )
        for path in image.smoke
        for level in Level
        if path.name.startswith(f"{level}_")
    )


def _secrets(done: scan_gate.Outcome) -> Gate:
    if done.report is None:
        return not_run(done.cls, done.text)
    found = [finding for finding in done.report.findings if finding.kind == "secret"]
    if found:
        text = "; ".join(finding.format() for finding in found)
        return Gate(status="failed", cls="secret-found", text=text, seconds=0.0)
    text = "environment and history were searched, files were not"
    return Gate(status="passed", cls="", text=text, seconds=0.0)


def _timed(judge: Callable[[], Gate]) -> Gate:
    begin = time.monotonic()
    gate = judge()
    return Gate(status=gate.status, cls=gate.cls, text=gate.text, seconds=time.monotonic() - begin)


def blocking(gates: dict[GateName, Gate], *, accepts_no_scan: bool) -> tuple[str, Gate] | None:
    """The first gate, in the order of the pipeline, that keeps an image from its tags.

    Shape: the word of ``record.EXIT_CODES`` and the gate. A scan that was not made blocks where the
    channel does not accept that; a smoke test blocks when it failed, or when it was not run at all
    (a missing GPU after the other levels passed does not: its word stays in the record).
    """
    for name in ("identity", "secrets", "duplicates", "size"):
        if gates[name].status == "failed":
            return name, gates[name]
    scan, smoke = gates["scan"], gates["smoke"]
    if scan.status == "failed":
        return "scan", scan
    if scan.status == "not-run" and not accepts_no_scan:
        return "scan-not-made", scan
    if smoke.status == "failed" or (smoke.status == "not-run" and not _cpu_passed(smoke)):
        return "smoke", smoke
    return None


def _cpu_passed(smoke: Gate) -> bool:
    return smoke.text.startswith(f"{Level.CPU} passed")
