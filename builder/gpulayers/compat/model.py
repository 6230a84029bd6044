"""What is asked of the judge, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpulayers.facts.model import ComputeCapability, Confidence, Origin
from gpulayers.refs import Platform
from gpulayers.versions import Dotted, MajorMinor, Pin

Word = Literal["broken", "unknown", "needs-forward-compat", "ok-minor-compat", "ok"]
# Worst first.
ORDER: tuple[Word, ...] = ("broken", "unknown", "needs-forward-compat", "ok-minor-compat", "ok")
RUNS: frozenset[Word] = frozenset({"ok", "ok-minor-compat"})
Outcome = Literal["pass", "fail", "warn", "unknown"]
RuleName = Literal[
    "wheel-exists",
    "python",
    "glibc",
    "cpu-architecture",
    "pairs",
    "gpu-driver-branch",
    "sass-coverage",
    "ptx",
    "driver-floor",
    "forward-compat",
    "library-floor",
    "framework-floor",
    "container-requirement",
    "compat-libraries",
    "base-image",
]
ToolkitMode = Literal["legacy", "cdi", "jit-cdi"]
AMD64 = Platform("linux", "amd64")
# A program of one's own on plain CUDA, in the place of a framework.
PLAIN_CUDA = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A combination as a person spells it.

    Shape: ``variant`` and ``cuda`` say the same in two ways, at most one is not empty (both empty:
    what the plain install takes); ``gpu`` is a model or a compute capability, ``driver`` a version,
    a bare branch or ``jetpackN``; ``python`` may be ``3.14t``; ``os``, ``python`` and ``base`` are
    "" where not said, ``toolkit_mode`` None. ``sms`` and ``ptx`` are for a plain CUDA program only.
    ``indexes`` are names of the indexes that wheels may come from, None for any that is known.
    ``read_sms``, ``read_exact_sms`` (for that very chip only) and ``read_ptx`` were read out of an
    image, and stand in the place of what the facts have of the framework.
    ``requirements`` are an image's own ``NVIDIA_REQUIRE_*`` by name, ``compat`` its folders of
    forward-compatibility libraries.
    """

    framework: Pin
    gpu: str
    driver: str
    variant: str = ""
    cuda: MajorMinor | None = None
    python: str = ""
    os: str = ""
    platform: Platform = AMD64
    packages: tuple[Pin, ...] = ()
    base: str = ""
    toolkit_mode: ToolkitMode | None = None
    sms: frozenset[ComputeCapability] = frozenset()
    ptx: frozenset[ComputeCapability] = frozenset()
    indexes: tuple[str, ...] | None = None
    read_sms: frozenset[ComputeCapability] = frozenset()
    read_exact_sms: frozenset[ComputeCapability] = frozenset()
    read_ptx: frozenset[ComputeCapability] = frozenset()
    requirements: tuple[tuple[str, str], ...] = ()
    compat: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A fact that a reason stands on."""

    id: str
    source: str
    confidence: Confidence

    @classmethod
    def of(cls, origin: Origin) -> "Used":
        """The fact of a row."""
        return cls(id=origin.id, source=origin.source, confidence=origin.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What one rule says.

    Shape: ``word`` is what the rule alone would make of the combination: the verdict is the worst
    of all; ``error`` is what a user would see at run time, "" where nothing is known to be seen;
    ``facts`` are empty only for ``unknown``, where there is none.
    """

    rule: RuleName
    outcome: Outcome
    word: Word
    text: str
    facts: tuple[Used, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A single change that makes it better.

    Shape: ``change`` maps a key of the query (``variant``, ``framework``, ``driver``, ``gpu``,
    ``python``, ``os``…) to its new value.
    """

    change: Mapping[str, str]
    verdict: Word
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredDriver:
    """The oldest driver that runs it, and the oldest that knows its CUDA; None: not known."""

    minimum: Dotted | None
    native: Dotted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with everything it stands on.

    Shape: ``reasons`` are in the order of the rules, those that decided included; ``fixes`` nearest
    first, empty for ``ok``, and where none was asked for or found.
    """

    verdict: Word
    summary: str
    error: str
    reasons: tuple[Reason, ...]
    fixes: tuple[Fix, ...]
    required_driver: RequiredDriver

    @property
    def decisive(self) -> tuple[Reason, ...]:
        """The reasons that made the verdict what it is: those with its own word."""
        return tuple(reason for reason in self.reasons if reason.word == self.verdict)

    @property
    def line(self) -> str:
        """The word, the reason that decided it, and the fact that it stands on; plain ``ok``."""
        if self.verdict == "ok":
            return "ok"
        reason = self.decisive[0]
        fact = f" [{reason.facts[0].id}]" if reason.facts else ""
        return f"{self.verdict}: {reason.text}{fact}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The ids of all facts that decided it, each once; none for ``ok``."""
        decisive = self.decisive if self.verdict != "ok" else ()
        return tuple(dict.fromkeys(used.id for reason in decisive for used in reason.facts))
