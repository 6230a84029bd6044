"""Which images may move to a channel: a gate that failed or never spoke keeps an image back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpulayers.errors import (
    BudgetError,
    BuildError,
    ContractError,
    GpulayersError,
    RemoteError,
    ScanRejectedError,
)
from gpulayers.record import GATES, NO_BUDGET, Gate, GateName, ImageRecord, Status

# Secrets are part of the scan, and duplicate content is advice: where they did not speak, the
# gates here decide.
REQUIRED: tuple[GateName, ...] = ("identity", "size", "scan", "smoke")
CPU_PASSED = "cpu passed"
BUILD = "build"
TOLD = 5
TEXT_MAX = 200
ERRORS: Mapping[str, Callable[[str], GpulayersError]] = {
    BUILD: BuildError,
    "identity": ContractError,
    "secrets": ContractError,
    "duplicates": ContractError,
    "size": BudgetError,
    "scan": ScanRejectedError,
    "smoke": ContractError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a channel accepts without an answer.

    Shape: ``scan_not_run`` is the policy's word for the channel; ``gpu_not_run`` takes images whose
    GPU checks did not run, or ran against a stand-in, when those without a GPU passed.
    """

    scan_not_run: bool
    gpu_not_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One gate that keeps one image back.

    Shape: ``gate`` is a gate's name, or ``build`` where there is no image; then ``status`` is
    ``failed``, or ``not-run`` where nothing was tried.
    """

    tag: str
    gate: str
    status: Status
    cls: str
    text: str

    def format(self) -> str:
        """``TAG: GATE STATUS (CLASS): TEXT``."""
        said = f" ({self.cls})" if self.cls else ""
        text = self.text if len(self.text) <= TEXT_MAX else f"{self.text[:TEXT_MAX]}…"
        return f"{self.tag}: {self.gate} {self.status}{said}" + (f": {text}" if text else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Which images may move, and what keeps the others back: all of it, in the pipeline's order."""

    channel: str
    allowed: tuple[ImageRecord, ...]
    refused: tuple[Refusal, ...]

    def error(self) -> GpulayersError | None:
        """The refusals as one error, or None where there are none.

        Shape: a gate that failed gives its own exit code, the first in the pipeline's order where
        several did; a gate that is missing gives 9.
        """
        if not self.refused:
            return None
        names = {refusal.gate for refusal in self.refused}
        failed = {refusal.gate for refusal in self.refused if refusal.status == "failed"}
        gate = next((name for name in ERRORS if name in failed), "")
        missing = ", ".join(name for name in ERRORS if name in names)
        lines = [f"  {refusal.format()}" for refusal in self.refused[:TOLD]]
        more = len(self.refused) - TOLD
        lines += [f"  and {more} more"] if more > 0 else []
        images = len({refusal.tag for refusal in self.refused})
        msg = f"{images} not let into {self.channel} by {missing}:\n" + "\n".join(lines)
        error = ERRORS[gate](msg) if gate else RemoteError(msg)
        error.hint = _hint(gate, missing, self.channel)
        return error


def _hint(gate: str, missing: str, channel: str) -> str:
    if gate:
        return "mend it and build again, or leave these images out with --only"
    if "scan" in missing:
        return f"scan them (`gpulayers scan`), or let {channel} accept that in scans/policy.toml"
    return "let the gate speak (`gpulayers build`, `gpulayers test`), or leave them out (--only)"


def decide(images: Sequence[ImageRecord], channel: str, terms: Terms) -> Decision:
    """Sort the images into those that may move to a channel and those that may not."""
    refused = {id(image): _refusals(image, terms) for image in images}
    return Decision(
        channel=channel,
        allowed=tuple(image for image in images if not refused[id(image)]),
        refused=tuple(each for image in images for each in refused[id(image)]),
    )


def _refusals(image: ImageRecord, terms: Terms) -> tuple[Refusal, ...]:
    if not image.digest:
        return (_no_image(image),)
    found = [_refusal(image, name, image.gates.get(name), terms) for name in GATES]
    return tuple(each for each in found if each is not None)


def _no_image(image: ImageRecord) -> Refusal:
    failure = image.failure
    return Refusal(
        tag=image.tag,
        gate=BUILD,
        status="not-run" if failure is None else "failed",
        cls="not-built" if failure is None else failure.cls,
        text="there is no image" if failure is None else f"there is no image: step {failure.step}",
    )


def _refusal(image: ImageRecord, name: GateName, gate: Gate | None, terms: Terms) -> Refusal | None:
    if gate is None and name in REQUIRED:
        text = "the record of the image does not have this gate"
        return Refusal(tag=image.tag, gate=name, status="not-run", cls="gate-missing", text=text)
    if gate is None or _is_accepted(name, gate, terms):
        return None
    return Refusal(tag=image.tag, gate=name, status=gate.status, cls=gate.cls, text=gate.text)


def _is_accepted(name: GateName, gate: Gate, terms: Terms) -> bool:
    if gate.status in ("passed", "failed"):
        return gate.status == "passed"
    match name:
        case "scan":
            return terms.scan_not_run
        case "smoke":
            return terms.gpu_not_run and _cpu_passed(gate)
        case "size":
            return gate.cls == NO_BUDGET
        case "identity":
            return False
        case "secrets" | "duplicates":
            return True


def _cpu_passed(smoke: Gate) -> bool:
    """Whether the level without a GPU passed, by the sentences of ``smoke.SmokeReport.text``."""
    return f"{smoke.text};".startswith(f"{CPU_PASSED};")
