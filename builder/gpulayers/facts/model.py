"""What is known of CUDA, drivers, GPUs, wheels and images: rows of data, each with its source.

An empty text, tuple or None never means two things: every field says what its absence is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpulayers.versions import Dotted, MajorMinor

ComputeCapability = MajorMinor
Confidence = Literal[
    "wheel",
    "binary",
    "registry",
    "doc",
    "source-code",
    "build-script",
    "secondary",
    "inferred",
    "unverified",
]
# These may warn; they never make a combination work, nor break one that a stronger fact decides.
WEAK: frozenset[Confidence] = frozenset({"inferred", "unverified"})
GpuClass = Literal["datacenter", "geforce", "workstation", "titan", "jetson"]
Stack = Literal["driver", "jetpack"]
Code = Literal["wheel", "runtime", "torch", "none", "unknown"]
DISTRIBUTION_INDEX = "pypi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a row is from.

    Shape: ``id`` is ``file/table/key``, unique over all facts; ``read`` is the day when the source
    was read (``YYYY-MM-DD``); ``note`` may be empty.
    """

    id: str
    source: str
    read: str
    confidence: Confidence
    note: str = ""

    @property
    def is_weak(self) -> bool:
        """Whether the row may warn only."""
        return self.confidence in WEAK


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A release of the CUDA toolkit.

    Shape: ``native_driver`` is the driver that ships with it (PTX is compiled from there on), None
    where that is not known; ``sms`` are the targets of its compiler, empty where not known;
    ``image_os`` are the systems that nvidia/cuda had images of it for.
    """

    origin: Origin
    version: Dotted
    native_driver: Dotted | None
    sms: frozenset[ComputeCapability]
    sms_deprecated: frozenset[ComputeCapability]
    image_os: tuple[str, ...]

    @property
    def release(self) -> MajorMinor:
        """Its major.minor."""
        return self.version.release


@dataclass(frozen=True, slots=True, kw_only=True)
class MinorFloor:
    """The oldest driver on which every toolkit of a CUDA major runs, as far as its SASS goes."""

    origin: Origin
    major: int
    driver: Dotted


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation of GPUs: compute capabilities from ``low`` to ``high``.

    Shape: ``first_cuda`` None: not known; ``last_cuda`` and ``last_branch`` None: still supported.
    """

    origin: Origin
    name: str
    low: ComputeCapability
    high: ComputeCapability
    first_cuda: MajorMinor | None
    last_cuda: MajorMinor | None
    last_branch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of the Linux driver.

    Shape: ``native`` is the newest CUDA that it knows; ``low`` is the lowest compute capability it
    drives; ``newest`` is the newest driver seen of it, None where none was; ``kind`` is LTS, LTSB,
    PB, NFB or ""; ``first_release`` and ``end`` are ``YYYY-MM[-DD]`` or "" where not known.
    """

    origin: Origin
    number: int
    kind: str
    native: MajorMinor
    low: ComputeCapability
    first_release: str
    end: str
    newest: Dotted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JetPack:
    """A JetPack release: Jetson's own driver stack, which no desktop driver stands in for.

    Shape: ``version`` is the release that the row was read for; ``native`` is the CUDA it brings;
    ``upgradable`` are the CUDA releases that run on it with the compatibility package for Jetson,
    empty where none is known; ``gpus`` are the compute capabilities it drives.
    """

    origin: Origin
    major: int
    version: str
    native: MajorMinor
    upgradable: tuple[MajorMinor, ...]
    gpus: frozenset[ComputeCapability]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A model of GPU.

    Shape: ``first_branch`` None: not known, ``last_branch`` and ``last_cuda`` None: still
    supported, or, on JetPack, not a matter of branches; ``memory_gb`` as advertised, empty where
    not known; ``forward_compat`` says whether forward compatibility is for its class, None where
    nobody knows; ``hosts`` are the machines it comes in, as ``uname -m`` says; ``brand`` is what
    NVML calls its brand, as ``NVIDIA_REQUIRE_CUDA`` compares it (``tesla``, ``geforce``…), "" where
    nobody looked.
    """

    origin: Origin
    name: str
    kind: GpuClass
    architecture: str
    cc: ComputeCapability
    brand: str
    stack: Stack
    memory_gb: tuple[float, ...]
    first_cuda: MajorMinor | None
    last_cuda: MajorMinor | None
    first_branch: int | None
    last_branch: int | None
    forward_compat: bool | None
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardCompat:
    """A package of forward compatibility: a newer CUDA driver library on an older driver.

    Shape: ``hosts`` are the driver branches it works on by NVIDIA's table, ``admits`` further ones
    that the package or its images let pass, which nobody promises; ``built_from`` is the driver it
    was taken from, None where not known.
    """

    origin: Origin
    package: str
    cuda: MajorMinor
    built_from: Dotted | None
    hosts: frozenset[int]
    admits: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnRange:
    """What cuDNN from ``first`` to ``last``, both included, asks for on one CUDA major.

    Shape: ``high`` is the highest compute capability that its table names, None where the table
    gives no end that can be trusted.
    """

    origin: Origin
    first: MajorMinor
    last: MajorMinor
    cuda_major: int
    driver: Dotted | None
    low: ComputeCapability | None
    high: ComputeCapability | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Libc:
    """The glibc of a system, such as ``debian12`` or ``ubuntu22.04``."""

    origin: Origin
    os: str
    glibc: MajorMinor


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What installing one release of a framework gives on one platform, in one variant.

    Shape: ``variant`` is ``cu128``, ``cu12`` (only the major is fixed), ``cpu``, or ``unknown``;
    ``index`` is the name of the index that serves it, ``pypi`` for the plain one; ``is_default``:
    the plain install takes it; ``published`` False: prepared, never seen on its index.
    ``cuda`` is the CUDA it was built with, None where that is not known more nearly than
    ``cuda_major``, which is 0 for a build without CUDA and None where nothing is known.
    ``toolkit`` is the release of the CUDA runtime that it pins, None where it asks for a range,
    brings none, or nobody looked. ``code`` says where its GPU code is: in the ``wheel`` (then
    ``sms`` and ``ptx`` list it, and ``exact_sms`` what runs on that very chip only), made at run
    time by the CUDA that is installed (``runtime``), in the ``torch`` that it pins, ``none``, or
    ``unknown``. ``low`` is the lowest compute capability by its own word, ``floor`` the oldest
    driver. ``cudnn`` is an exact version or "". ``pins`` are packages that it asks for, as PEP 440
    specifiers ("" for any). ``pythons`` are ``3.12`` or ``3.14t``, empty where not known.
    """

    origin: Origin
    package: str
    version: str
    variant: str
    platform: str
    index: str
    is_default: bool
    published: bool
    cuda: MajorMinor | None
    cuda_major: int | None
    toolkit: Dotted | None
    pythons: frozenset[str]
    glibc: MajorMinor | None
    code: Code
    sms: frozenset[ComputeCapability]
    exact_sms: frozenset[ComputeCapability]
    ptx: frozenset[ComputeCapability]
    low: ComputeCapability | None
    floor: Dotted | None
    cudnn: str
    pins: Mapping[str, str]
    release_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A package that belongs to certain releases of another: torchvision 0.23.0 to torch 2.8.0.

    Shape: ``wants`` is a PEP 440 specifier over ``of``'s versions, "" where the package's metadata
    says nothing: then any installs, and whether it works is not known; ``pythons`` are those that
    it has wheels for (``3.12``, ``3.14t``), empty where not known, or where one wheel is for many.
    """

    origin: Origin
    package: str
    version: str
    of: str
    wants: str
    pythons: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseImage:
    """What a release of nvidia/cuda's images brings.

    Shape: ``version`` is the tag's first part, ``systems`` are the OS parts of its tags;
    ``require_first`` is the first term of its ``NVIDIA_REQUIRE_CUDA``, "unknown" where that was not
    read, ``require_branches`` the driver branches that the further terms admit by brand;
    ``requirement`` is the whole of it for amd64, put together from these and the brands of its
    time (``rules/rule/require-brands``), "" where it was not read;
    ``has_compat``: a package of forward compatibility is in it; ``ended``: its own repository
    called it ended on the day that its note names.
    """

    origin: Origin
    version: Dotted
    systems: tuple[str, ...]
    require_first: str
    require_branches: tuple[int, ...]
    requirement: str
    has_compat: bool
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A statement about how things work that code follows, with its source."""

    origin: Origin
    name: str
    text: str


Fault = Literal["image", "host", "engine", "network", "scheduler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownError:
    """An error that users meet, and how it is told by what programs print.

    Shape: ``match`` are regular expressions over one line; ``code`` is CUDA's, NVML's or NCCL's
    number, 0 where there is none; ``rule`` says in words what foretells it, ``foretold_by`` which
    rules of the judge do, empty where none can; ``after`` are names of errors that cause it, ``*``
    for every other one; ``fault`` is what is mostly to be mended.
    """

    origin: Origin
    name: str
    fault: Fault
    code: int
    match: tuple[str, ...]
    cause: str
    rule: str
    fix: str
    foretold_by: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts. Every tuple is sorted by version or name, oldest first; mappings likewise.

    Shape: ``builds`` are by package; ``rules`` by their short name (``sass-same-major``…).
    """

    toolkits: tuple[Toolkit, ...]
    minor_floors: Mapping[int, MinorFloor]
    generations: tuple[Generation, ...]
    branches: Mapping[int, Branch]
    jetpacks: tuple[JetPack, ...]
    gpus: tuple[Gpu, ...]
    forward: tuple[ForwardCompat, ...]
    cudnn: tuple[CudnnRange, ...]
    libcs: Mapping[str, Libc]
    builds: Mapping[str, tuple[Build, ...]]
    pairings: tuple[Pairing, ...]
    images: tuple[BaseImage, ...]
    rules: Mapping[str, Rule]
