"""Looking facts up by the words that people use."""

import re
from difflib import SequenceMatcher
from functools import lru_cache

from gpulayers.errors import ProjectError
from gpulayers.facts.model import (
    Branch,
    Build,
    ComputeCapability,
    Facts,
    Generation,
    Gpu,
    JetPack,
    Libc,
    Pairing,
    Toolkit,
)
from gpulayers.versions import Dotted, MajorMinor, VersionError

CAPABILITY = re.compile(r"(?:sm_?|compute_?|cc)?(?P<major>\d{1,2})(?:\.(?P<minor>\d))", re.ASCII)
COMPACT = re.compile(r"(?:sm|compute)_?(?P<major>\d{1,2})(?P<minor>\d)", re.ASCII)
# Words that vendors and tools put around a name, and that name no other GPU when left out.
NOISE = frozenset(
    {"nvidia", "tesla", "gpu", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "hbm3"}
    | {"generation", "workstation", "edition"}
)
# What the device plugin adds for a slice: a slice is judged as the whole.
SLICE = re.compile(r"-mig-[0-9a-z.+]+$", re.ASCII)
EXAMPLE = "A100-80GB"
FAMILIES = ("geforce", "jetson", "dgx")
MEMORY = re.compile(r"(\d+)gb?", re.ASCII)
JETPACK = re.compile(r"jetpack[ -]?(?P<version>\d+(\.\d+)*)", re.ASCII)


class FactError(ProjectError):
    """A word that no fact knows; the hint names the nearest."""


def gpu(facts: Facts, text: str) -> Gpu | ComputeCapability:
    """A GPU by its model, or by its compute capability (``8.9``, ``sm_89``).

    Shape: case, dashes, memory sizes, form factors and NVIDIA's name are forgiven; of several
    models that only differ in memory the first is given.
    Raises: FactError: no such GPU; names the nearest.
    """
    asked = SLICE.sub("", text.strip().lower())
    match = CAPABILITY.fullmatch(asked) or COMPACT.fullmatch(asked)
    if match is not None:
        return MajorMinor(int(match["major"]), int(match["minor"]))
    named = _named(facts.gpus)
    for words in _spellings(asked):
        if words in named:
            return named[words]
    part = _part(facts, set(_spellings(asked)[1]))
    if part is not None:
        return part
    msg = f"unknown GPU {text!r}: wanted a model as {EXAMPLE}, or a compute capability"
    hint = f"did you mean {_nearest(facts, asked)}? A compute capability as 8.9 does too"
    raise FactError(msg, hint=hint)


def _nearest(facts: Facts, asked: str) -> str:
    """The name that shares most words with what was asked, numbers before all; then letters."""
    words = set(_words(asked))

    def likeness(name: str) -> tuple[int, int, float]:
        shared = words & set(_words(name))
        numbers = sum(any(letter.isdigit() for letter in word) for word in shared)
        plain = " ".join(_spellings(name)[3])
        ratios = (SequenceMatcher(None, asked, each).ratio() for each in (name.lower(), plain))
        return (numbers, len(shared), max(ratios))

    return max((each.name for each in facts.gpus), key=likeness)


def _part(facts: Facts, words: set[str]) -> Gpu | None:
    """The GPU whose name has these words; of several, the first when all are judged alike."""
    found = [each for each in facts.gpus if words and words <= set(_words(each.name))]
    alike = {
        (each.cc, each.kind, each.brand, each.stack, each.first_branch, each.last_branch)
        for each in found
    }
    return found[0] if len(alike) == 1 else None


def _words(text: str) -> tuple[str, ...]:
    # "RTX4090" is "RTX 4090"; "A100" stays one word, as do "L4" and "GTX" of one letter and digits.
    parted = re.sub(r"\b(rtx|gtx|titan)(?=[0-9a-z])", r"\1 ", text.lower())
    parted = re.sub(r"(?<=[0-9])(ti|super)\b", r" \1", parted)
    return tuple(word for word in re.split(r"[^a-z0-9]+", parted) if word)


def _spellings(text: str) -> list[tuple[str, ...]]:
    """The words of a name, then without what may be left out of it."""
    words = tuple(word for word in _words(text) if word not in NOISE)
    joined = _joined(words)
    without_memory = tuple(w for w in joined if not MEMORY.fullmatch(w) and w != "gb")
    plain = tuple(word for word in without_memory if word not in FAMILIES)
    return [words, joined, without_memory, plain]


def _joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """``80 gb`` is one word."""
    return tuple(_words(re.sub(r"\b(\d+) gb\b", r"\1gb", " ".join(words))))


@lru_cache(maxsize=4)
def _named(gpus: tuple[Gpu, ...]) -> dict[tuple[str, ...], Gpu]:
    found: dict[tuple[str, ...], Gpu] = {}
    for each in gpus:
        for words in _spellings(each.name):
            found.setdefault(words, each)
    return found


def driver(facts: Facts, text: str) -> Dotted | JetPack:
    """A driver version, a bare branch (one number), or a JetPack release (``jetpack6.2``).

    Shape: of a bare ``jetpack6`` its first release, which knows the least; of a release that is
    not known itself, the newest known one before it.
    Raises: FactError: neither.
    """
    match = JETPACK.fullmatch(text.strip().lower())
    if match is not None:
        return _jetpack(facts, Dotted.parse(match["version"]))
    try:
        return Dotted.parse(text.strip())
    except VersionError as error:
        msg = f"unknown driver {text!r}: wanted a version as 535.183.01, a branch, or jetpack6"
        raise FactError(msg, hint="nvidia-smi prints it as Driver Version") from error


def _jetpack(facts: Facts, asked: Dotted) -> JetPack:
    family = [each for each in facts.jetpacks if each.major == asked.numbers[0]]
    if not family:
        known = ", ".join(f"jetpack{each.version}" for each in facts.jetpacks)
        msg = f"unknown JetPack {asked.format()}: known are {known}"
        raise FactError(msg)
    not_newer = [each for each in family if Dotted.parse(each.version) <= asked]
    return not_newer[-1] if not_newer else family[0]


def branch_of(facts: Facts, version: Dotted) -> Branch | None:
    """The branch of a driver; of one newer than all known, the newest; None for an unknown one."""
    number = version.numbers[0]
    newest = max(facts.branches)
    return facts.branches.get(min(number, newest))


def generation_of(facts: Facts, cc: ComputeCapability) -> Generation | None:
    """The generation of a compute capability; where two reach over it, the narrower one.

    Shape: Rubin's 10.7 lies inside Blackwell's 10.0 to 12.1.
    """
    found = [each for each in facts.generations if each.low <= cc <= each.high]
    return max(found, key=lambda each: each.low, default=None)


def toolkits_of(facts: Facts, release: MajorMinor) -> tuple[Toolkit, ...]:
    """The toolkits of a CUDA release, oldest first; may be empty."""
    wanted = (release.major, release.minor)
    return tuple(each for each in facts.toolkits if each.version.numbers[:2] == wanted)


def builds_of(facts: Facts, package: str, version: str, platform: str = "") -> tuple[Build, ...]:
    """The known builds of a release, on one platform or on all."""
    return tuple(
        each
        for each in facts.builds.get(package, ())
        if each.version == version and platform in {"", each.platform}
    )


def versions_of(facts: Facts, package: str) -> tuple[str, ...]:
    """The known releases of a package, in the order of its file, without doubles."""
    return tuple(dict.fromkeys(each.version for each in facts.builds.get(package, ())))


def libc_of(facts: Facts, os: str) -> Libc | None:
    """The glibc of an OS; ``anything-ubuntu22.04`` is taken as its last part."""
    return facts.libcs.get(os) or facts.libcs.get(os.rpartition("-")[2])


def pairings_of(facts: Facts, package: str, of: str) -> tuple[Pairing, ...]:
    """What is known of a package that belongs to another one."""
    return tuple(each for each in facts.pairings if (each.package, each.of) == (package, of))
