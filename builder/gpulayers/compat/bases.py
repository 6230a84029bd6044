"""What a base image brings: its requirement of the host, its compatibility libraries, its end."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from gpulayers.compat.model import AMD64, Query, Reason, RuleName
from gpulayers.compat.reasons import failed, passed, unknown, warned
from gpulayers.facts.model import (
    BaseImage,
    Branch,
    ComputeCapability,
    Facts,
    Gpu,
    GpuClass,
    JetPack,
    Origin,
)
from gpulayers.versions import Dotted

NVIDIA = re.compile(r"(?:(?:docker\.io|nvcr\.io)/)?nvidia/cuda:(?P<tag>[^@]+)(?:@.*)?")
TAG = re.compile(r"(?P<version>\d+\.\d+(?:\.\d+)?)-(?P<rest>.+)", re.ASCII)
# What NVML may call the brand of a board of each class; which of them, is not known by model.
BRANDS: Mapping[GpuClass, tuple[str, ...]] = {
    "datacenter": ("tesla", "nvidia"),
    "workstation": ("quadro", "quadrortx", "nvidiartx", "nvidia"),
    "geforce": ("geforce", "geforcertx"),
    "titan": ("titan", "titanrtx"),
    "jetson": ("unknown", "nvidia"),
}
CONDITION = re.compile(r"(?P<name>cuda|driver|brand|arch)(?P<op>>=|<=|!=|=|<|>)(?P<value>\S+)")
REFUSED = "nvidia-container-cli: requirement error: unsatisfied condition"
TWO_PARTS = 2
# Images that may ask something of a host; those of distributions do not.
OF_NVIDIA = re.compile(r"(docker\.io/)?nvidia/|nvcr\.io/")


def satisfies(requirement: str, values: Mapping[str, str]) -> bool:
    """Whether a host satisfies a requirement: blanks are OR, commas AND.

    Shape: ``values`` has ``cuda``, ``driver``, ``brand`` and ``arch`` of the host.
    """
    return any(
        all(_holds(condition, values) for condition in term.split(","))
        for term in requirement.split()
    )


def _holds(condition: str, values: Mapping[str, str]) -> bool:
    match = CONDITION.fullmatch(condition)
    if match is None:
        return False
    found, wanted = values[match["name"]], match["value"]
    if match["name"] == "brand":
        return (found == wanted) == (match["op"] == "=")
    left, right = _padded(found, wanted)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[match["op"]]


def _padded(left: str, right: str) -> tuple[list[int], list[int]]:
    """Numbers of equal count: 535 is 535.0.0 here, as the runtime compares them."""
    two = [list(Dotted.parse(text).numbers) for text in (left, right)]
    longest = max(map(len, two))
    first, second = ([*numbers, *[0] * (longest - len(numbers))] for numbers in two)
    return first, second


def rules(
    query: Query,
    gpu: Gpu | ComputeCapability,
    driver: Dotted | JetPack,
    branch: Branch | None,
    facts: Facts,
) -> Iterator[Reason]:
    """What the base decides."""
    yield from about(query.base, facts)
    image = _image(query.base, facts)
    if image is None:
        if query.toolkit_mode == "legacy" and OF_NVIDIA.match(query.base):
            text = f"what {query.base} asks of a host is not known"
            yield unknown("container-requirement", text, facts.images[-1].origin)
        return
    if isinstance(driver, Dotted) and branch is not None:
        yield from _requirement(query, image, gpu, driver, branch, facts)
        yield from _libraries(image, gpu, branch, facts)


def of_image(
    query: Query,
    gpu: Gpu | ComputeCapability,
    driver: Dotted | JetPack,
    branch: Branch | None,
    facts: Facts,
) -> Iterator[Reason]:
    """What an image that was looked at asks of a host itself, and what it brings."""
    rule, brands = facts.rules["require"].origin, facts.rules["require-brands"].origin
    hosts = _hosts(gpu, driver, branch) if isinstance(driver, Dotted) and branch else ()
    for name, asked in query.requirements if hosts else ():
        first = asked.split()[0]
        if query.toolkit_mode in {"cdi", "jit-cdi"}:
            text = f"{name} asks for {first}…; {query.toolkit_mode} does not look at it"
            yield passed("container-requirement", text, rule)
        else:
            answers = {satisfies(asked, host) for host in hosts}
            yield _asked(query, answers, f"{name} asks for {first}…", first, (rule, brands))
    for folder in query.compat:
        hook = facts.rules["compat-hook"].origin
        text = f"{folder} brings libraries of forward compatibility"
        if isinstance(gpu, Gpu) and gpu.forward_compat is False:
            text = f"{text}, which {gpu.name} cannot use: a toolkit that takes them fails with 804"
        yield warned("compat-libraries", text, hook)


def about(base: str, facts: Facts) -> Iterator[Reason]:
    """Warnings about the image itself, whatever the host: its tags moved, ended, or nobody knows.

    Shape: ``base`` is an image reference; of one that is not NVIDIA's nothing is known.
    """
    match = NVIDIA.fullmatch(base)
    if match is None:
        yield warned("base-image", f"nothing is known of {base} and what it asks of a host")
        return
    image = _image(base, facts)
    if image is not None:
        system = system_of(base)
        if image.systems and system and system not in image.systems:
            has = ", ".join(image.systems)
            text = f"nvidia/cuda:{image.version.text} has no images for {system}, only for {has}"
            yield failed("base-image", text, image.origin)
        yield from _end_of(image, facts)
    elif _version(match["tag"]).count(".") < TWO_PARTS:
        text = f"{base}: the tag names no patch release, and moves or is gone"
        yield warned("base-image", text, facts.rules["image-ends"].origin)


def system_of(base: str) -> str:
    """The OS of one of NVIDIA's images by its tag (``ubuntu22.04``); "" for others."""
    match = NVIDIA.fullmatch(base)
    return match["tag"].rpartition("-")[2] if match is not None and "-" in match["tag"] else ""


def _version(tag: str) -> str:
    parted = TAG.fullmatch(tag)
    return parted["version"] if parted is not None else ""


def _image(base: str, facts: Facts) -> BaseImage | None:
    match = NVIDIA.fullmatch(base)
    version = _version(match["tag"]) if match is not None else ""
    return next((each for each in facts.images if each.version.text == version), None)


def _end_of(image: BaseImage, facts: Facts) -> Iterator[Reason]:
    newer = [
        each.version.text
        for each in facts.images
        if each.version.release == image.version.release and each.version > image.version
    ]
    if image.ended or newer:
        why = f"{newer[-1]} follows it" if newer else "its CUDA is no longer supported"
        text = f"nvidia/cuda:{image.version.text} has ended ({why}): its tags are deleted in time"
        yield warned("base-image", text, image.origin, facts.rules["image-ends"].origin)


def _requirement(
    query: Query,
    image: BaseImage,
    gpu: Gpu | ComputeCapability,
    driver: Dotted,
    branch: Branch,
    facts: Facts,
) -> Iterator[Reason]:
    rule = facts.rules["require"].origin
    if query.toolkit_mode in {"cdi", "jit-cdi"}:
        text = f"{query.toolkit_mode} does not look at what the base asks of a host"
        yield passed("container-requirement", text, rule)
        return
    # Requirements were read of images for amd64; those for arm64 name other branches.
    requirement = image.requirement if query.platform == AMD64 else ""
    if not requirement:
        text = f"what nvidia/cuda:{image.version.text} asks of a host was not read"
        judge = unknown if query.toolkit_mode == "legacy" else warned
        yield judge("container-requirement", text, image.origin, rule)
        return
    answers = {satisfies(requirement, host) for host in _hosts(gpu, driver, branch)}
    asks = f"the base asks for {image.require_first}, or for one of the branches "
    asks += f"{', '.join(map(str, image.require_branches))} on the brands that it names"
    brands = facts.rules["require-brands"].origin
    yield _asked(query, answers, asks, image.require_first, (image.origin, rule, brands))


def _asked(
    query: Query, answers: Collection[bool], asks: str, first: str, origins: Sequence[Origin]
) -> Reason:
    """What comes of a requirement where the toolkit looks at it.

    Shape: ``answers`` are those for each brand that the GPU may have; ``asks`` says what is asked,
    ``first`` is the condition that the runtime names; the last origin is that on brands.
    """
    rule: RuleName = "container-requirement"
    if set(answers) == {True}:
        return passed(rule, f"{asks}: it is", *origins[:-1])
    if query.toolkit_mode is None:
        return warned(rule, f"{asks}: refused in legacy mode, not looked at by CDI", *origins)
    if set(answers) == {False}:
        text = f"{asks}; the container does not start"
        return failed(rule, text, *origins, error=f"{REFUSED}: {first}")
    return unknown(rule, f"{asks}; it depends on the brand, which is not known", *origins)


def _hosts(
    gpu: Gpu | ComputeCapability, driver: Dotted, branch: Branch
) -> Sequence[Mapping[str, str]]:
    """What the host may say of itself, once for each brand that the GPU may have."""
    every = tuple(dict.fromkeys(brand for brands in BRANDS.values() for brand in brands))
    cc = gpu.cc if isinstance(gpu, Gpu) else gpu
    return [
        {
            "cuda": branch.native.format(),
            "driver": driver.text,
            "brand": brand,
            "arch": cc.format(),
        }
        for brand in (_brands(gpu) if isinstance(gpu, Gpu) else every)
    ]


def _brands(gpu: Gpu) -> Sequence[str]:
    return (gpu.brand,) if gpu.brand else BRANDS[gpu.kind]


def _libraries(
    image: BaseImage, gpu: Gpu | ComputeCapability, branch: Branch, facts: Facts
) -> Iterator[Reason]:
    if not image.has_compat or image.version.release <= branch.native:
        return
    hook = facts.rules["compat-hook"].origin
    brings = f"the base brings the libraries of cuda-compat {image.version.release.format()}"
    if isinstance(gpu, Gpu) and gpu.forward_compat is False:
        text = f"{brings}, which {gpu.name} cannot use: a toolkit that takes them fails with 804"
        yield warned("compat-libraries", text, image.origin, hook)
    else:
        yield passed("compat-libraries", brings, image.origin, hook)
