"""Checks to run in an image, what each said, and what all of them came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpulayers.errors import GpuNotProvenError
from gpulayers.refs import ImageRef
from gpulayers.smoke.classes import Class, Status

# The check of layers/cuda whose result a GPU computed.
KERNEL_CHECK = "kernel"
# Longer values are cut in sentences for people; the results keep them whole.
TEXT_MAX = 200
# From best to worst; an outcome over several levels is that of the worst.
ORDER = (Status.PASSED, Status.SIMULATED, Status.NOT_RUN, Status.FAILED)


class Level(StrEnum):
    """A rung of the ladder, by the first part of a script's name."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A script that runs inside the image.

    Shape: ``layer`` is where it comes from (``cuda``, ``models/digits``), ``name`` its file's name.
    """

    layer: str
    name: str
    level: Level
    text: str

    def format(self) -> str:
        """``LAYER/NAME``."""
        return f"{self.layer}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError:
    """A call of a CUDA library that did not work; code 0 where the error has no number."""

    call: str
    code: int
    name: str

    def format(self) -> str:
        """``CALL: NAME (CODE)``, without what is not known."""
        text = f"{self.call}: {self.name}" if self.call else self.name
        return f"{text} ({self.code})" if self.code else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One result that a script printed.

    Shape: ``value`` and ``expected`` are text, or JSON where they were not text; both may be empty;
    ``skip`` says why nothing was looked at, or is empty.
    """

    check: str
    ok: bool
    value: str
    unit: str
    expected: str
    skip: str
    stand_in: bool
    error: CallError | None

    def format(self) -> str:
        """The sentence for a result that did not hold."""
        if self.error is not None:
            return f"{self.check}: {self.error.format()}"
        wanted = f"wanted {_short(self.expected)}, " if self.expected else ""
        found = _short(self.value) or "nothing"
        return f"{self.check}: {wanted}found {found} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """What became of one script; ``said`` are the last lines that were not results."""

    script: str
    code: int
    seconds: float
    timed_out: bool
    lines: tuple[Line, ...]
    said: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it ended well, with at least one result and all of them holding."""
        return not self.timed_out and not self.code and bool(self.lines) and not self.broken

    @property
    def broken(self) -> tuple[Line, ...]:
        """The results that did not hold."""
        return tuple(line for line in self.lines if not line.ok)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOutcome:
    """What one level came to; ``text`` is the sentence for people, empty only when it passed."""

    level: Level
    status: Status
    cls: Class
    text: str
    seconds: float
    scripts: tuple[ScriptResult, ...]

    @property
    def gpu_proven(self) -> bool:
        """Whether a real GPU computed a kernel whose result was compared."""
        lines = [line for script in self.scripts for line in script.lines]
        computed = any(line.check == KERNEL_CHECK and line.ok and not line.skip for line in lines)
        simulated = any(line.stand_in for line in lines)
        passed = self.level is Level.GPU and self.status is Status.PASSED
        return passed and computed and not simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeReport:
    """What all levels came to, in the order in which they ran."""

    image: ImageRef
    levels: tuple[LevelOutcome, ...]

    @property
    def worst(self) -> LevelOutcome:
        """The level that decides: the worst, of equals the first."""
        return max(self.levels, key=lambda outcome: ORDER.index(outcome.status))

    @property
    def status(self) -> Status:
        """The status of the deciding level."""
        return self.worst.status

    @property
    def cls(self) -> Class:
        """The class of the deciding level."""
        return self.worst.cls

    @property
    def text(self) -> str:
        """One sentence a level, as ``cpu passed; gpu not-run (…)``."""
        return "; ".join(_sentence(outcome) for outcome in self.levels)

    @property
    def seconds(self) -> float:
        """Wall time of all levels."""
        return sum(outcome.seconds for outcome in self.levels)

    @property
    def gpu_proven(self) -> bool:
        """Whether a real GPU did a real computation in this image."""
        return any(outcome.gpu_proven for outcome in self.levels)

    def demand_gpu(self) -> None:
        """Refuse a report in which no real GPU computed anything.

        Raises: GpuNotProvenError: none did; says what was found instead.
        """
        if not self.gpu_proven:
            wanted = "wanted a kernel computed by a real GPU"
            msg = f"{self.image.format()}: {wanted}, found: {self.text}"
            raise GpuNotProvenError(msg, hint="`gpulayers doctor` says what this machine lacks")


def _sentence(outcome: LevelOutcome) -> str:
    detail = f" ({outcome.cls}: {outcome.text})" if outcome.cls else ""
    return f"{outcome.level} {outcome.status}{detail}"


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"


def of_level(checks: Sequence[Check], level: Level) -> tuple[Check, ...]:
    """The checks of one level, in their order."""
    return tuple(check for check in checks if check.level is level)
