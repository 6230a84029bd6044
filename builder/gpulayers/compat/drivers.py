"""Whether the driver is new enough, by itself, by minor version, or with forward compatibility."""

from collections.abc import Iterator

from gpulayers.compat.model import Reason
from gpulayers.compat.reasons import failed, passed, unknown, warned
from gpulayers.facts import find
from gpulayers.facts.model import (
    Branch,
    ComputeCapability,
    Facts,
    ForwardCompat,
    Gpu,
    JetPack,
    Origin,
)
from gpulayers.versions import Dotted, MajorMinor

NO_GPU = "no CUDA-capable device is detected"
TOO_OLD = "CUDA driver version is insufficient for CUDA runtime version"
# CUDA 11.0 is older than minor-version compatibility; it runs from its own driver on.
BEFORE_MINOR = MajorMinor(11, 0)


def floor_of(
    facts: Facts, release: MajorMinor, toolkit: Dotted | None = None
) -> tuple[Dotted, Origin] | None:
    """The oldest driver that runs a CUDA release, and the row that says so; None: not known.

    Shape: before minor-version compatibility each patch has a floor of its own: that of
    ``toolkit``, or the highest of them.
    """
    floor = facts.minor_floors.get(release.major)
    if floor is not None and release != BEFORE_MINOR:
        return floor.driver, floor.origin
    known = [
        (each.native_driver, each.origin)
        for each in find.toolkits_of(facts, release)
        if each.native_driver is not None and toolkit in {None, each.version}
    ]
    return max(known, key=lambda pair: pair[0]) if known else None


def gpu_rule(
    gpu: Gpu | ComputeCapability, driver: Dotted | JetPack, branch: Branch | None, facts: Facts
) -> Iterator[Reason]:
    """Whether the branch drives the GPU at all."""
    cc = gpu.cc if isinstance(gpu, Gpu) else gpu
    name = gpu.name if isinstance(gpu, Gpu) else f"a GPU of {cc.format()}"
    if isinstance(driver, JetPack):
        yield from _on_jetpack(gpu, cc, name, driver)
        return
    if isinstance(gpu, Gpu) and gpu.stack == "jetpack":
        text = f"{name} takes JetPack, a driver stack of its own, not driver {driver.text}"
        is_open = gpu.first_branch is not None
        judge = unknown if is_open else failed
        yield judge("gpu-driver-branch", text, gpu.origin)
        return
    if branch is None:
        return
    if not isinstance(gpu, Gpu):
        yield from _capability_alone(cc, facts)
    origin = (gpu.origin,) if isinstance(gpu, Gpu) else ()
    if cc < branch.low:
        text = (
            f"branch {branch.number} drives from {branch.low.format()} on: {name} has {cc.format()}"
        )
        yield failed(
            "gpu-driver-branch", text, *origin, branch.origin, *_generation(facts, cc), error=NO_GPU
        )
        return
    yield from _too_new(gpu, cc, name, branch, facts)


def _admitted(
    release: MajorMinor, branch: Branch, package: ForwardCompat | None, facts: Facts
) -> tuple[str, Origin] | None:
    """What speaks for a branch that NVIDIA's table does not list, with its row."""
    number, shown = branch.number, release.format()
    if package is not None and package.origin.is_weak:
        text = f"which branches {package.package} works on was not read"
        return text, package.origin
    if package is not None and number in package.admits:
        text = f"NVIDIA's table for {package.package} does not name branch {number}, and its"
        return f"{text} images admit it: whether it works is not known", package.origin
    for image in facts.images:
        if image.version.release == release and number in image.require_branches:
            text = f"NVIDIA's table does not name branch {number}, and images of CUDA {shown}"
            return f"{text} admit it: whether it works is not known", image.origin
    return None


def _capability_alone(cc: ComputeCapability, facts: Facts) -> Iterator[Reason]:
    """What is not known of a GPU that is named by its compute capability."""
    models = [gpu for gpu in facts.gpus if gpu.cc == cc]
    if not models:
        text = f"no GPU of compute capability {cc.format()} is known"
        yield unknown("gpu-driver-branch", text, facts.gpus[-1].origin)
    elif all(gpu.stack == "jetpack" for gpu in models):
        text = f"{cc.format()} is that of {models[0].name}, which takes JetPack, not these drivers"
        yield unknown("gpu-driver-branch", text, models[0].origin)


def _on_jetpack(
    gpu: Gpu | ComputeCapability, cc: ComputeCapability, name: str, jetpack: JetPack
) -> Iterator[Reason]:
    if isinstance(gpu, Gpu) and gpu.stack != "jetpack":
        text = f"JetPack is for Jetson; {name} takes a driver of NVIDIA's branches"
        yield failed("gpu-driver-branch", text, gpu.origin, jetpack.origin)
    elif cc in jetpack.gpus:
        text = f"JetPack {jetpack.version} drives {name}"
        yield passed("gpu-driver-branch", text, jetpack.origin)
    else:
        text = f"whether JetPack {jetpack.major} drives {name} is not known"
        yield unknown("gpu-driver-branch", text, jetpack.origin)


def _generation(facts: Facts, cc: ComputeCapability) -> tuple[Origin, ...]:
    found = find.generation_of(facts, cc)
    return (found.origin,) if found is not None else ()


def _too_new(
    gpu: Gpu | ComputeCapability, cc: ComputeCapability, name: str, branch: Branch, facts: Facts
) -> Iterator[Reason]:
    generation = find.generation_of(facts, cc)
    knows = f"branch {branch.number} knows CUDA {branch.native.format()}"
    came = generation.first_cuda if generation is not None else None
    if generation is not None and came is not None and branch.native < came:
        text = f"{knows}, and {generation.name} came with {came.format()}: it does not drive {name}"
        judge = unknown if generation.origin.is_weak else failed
        yield judge("gpu-driver-branch", text, generation.origin, branch.origin)
        return
    if isinstance(gpu, Gpu) and gpu.first_cuda is not None and branch.native < gpu.first_cuda:
        text = f"{knows}, and {name} came with {gpu.first_cuda.format()}: it may not drive it"
        yield unknown("gpu-driver-branch", text, gpu.origin, branch.origin)
        return
    text = f"branch {branch.number} drives compute capability {cc.format()}"
    yield passed("gpu-driver-branch", text, branch.origin)


def driver_rule(
    release: MajorMinor,
    gpu: Gpu | ComputeCapability,
    driver: Dotted | JetPack,
    branch: Branch | None,
    facts: Facts,
    *,
    toolkit: Dotted | None = None,
) -> Iterator[Reason]:
    """Native, minor version, forward compatibility, or too old."""
    if isinstance(driver, JetPack):
        yield _jetpack_rule(release, driver)
        return
    if branch is None:
        known = f"{min(facts.branches)} to {max(facts.branches)}"
        text = f"nothing is known of branch {driver.numbers[0]}; branches are from {known}"
        yield unknown("driver-floor", text, facts.branches[max(facts.branches)].origin)
        return
    if driver.numbers[0] > branch.number:
        text = f"driver {driver.text} is newer than the facts: taken as branch {branch.number}"
        yield warned("driver-floor", text, branch.origin)
    floor = floor_of(facts, release, toolkit)
    if floor is None:
        yield unknown("driver-floor", f"which driver CUDA {release.format()} needs is not known")
        return
    oldest, origin = floor
    needs = f"CUDA {release.major} runs from driver {oldest.text} on"
    if driver >= oldest and branch.native >= release:
        text = f"branch {branch.number} knows CUDA {branch.native.format()}, {needs}"
        yield passed("driver-floor", text, branch.origin, origin)
    elif driver >= oldest:
        text = f"{needs} by minor-version compatibility; branch {branch.number} knows "
        text += f"CUDA {branch.native.format()}, not {release.format()}"
        yield passed("driver-floor", text, origin, branch.origin, word="ok-minor-compat")
    else:
        text = f"{needs}, {driver.text} is older"
        yield from _forward(release, gpu, branch, facts, text=text, origin=origin)


def _jetpack_rule(release: MajorMinor, jetpack: JetPack) -> Reason:
    has = f"JetPack {jetpack.version} has CUDA {jetpack.native.format()}"
    if release <= jetpack.native and release.major == jetpack.native.major:
        return passed("driver-floor", has, jetpack.origin)
    if release in jetpack.upgradable:
        text = f"{has}; {release.format()} runs with Jetson's own upgrade package"
        return passed("forward-compat", text, jetpack.origin, word="needs-forward-compat")
    if release.major == jetpack.native.major:
        text = f"{has}; whether it runs {release.format()} is not known"
        return unknown("driver-floor", text, jetpack.origin)
    if release.major < jetpack.native.major:
        text = f"{has}; whether programs of CUDA {release.major} run there is not known"
        return unknown("driver-floor", text, jetpack.origin)
    return failed("driver-floor", f"{has}, not {release.format()}", jetpack.origin, error=TOO_OLD)


def forward_for_ptx(
    release: MajorMinor, gpu: Gpu | ComputeCapability, branch: Branch | None, facts: Facts
) -> Reason | None:
    """Forward compatibility where the driver would do, but for PTX: its libraries compile that."""
    package = package_of(facts, release)
    can = gpu.forward_compat if isinstance(gpu, Gpu) else None
    if package is None or branch is None or can is False or package.origin.is_weak:
        return None
    if branch.number not in package.hosts:
        return None
    rows = (package.origin, facts.rules["forward-compat-classes"].origin)
    text = f"the libraries of {package.package} compile PTX of CUDA {release.format()}"
    if can is None or not isinstance(gpu, Gpu):
        name = gpu.name if isinstance(gpu, Gpu) else f"a GPU of {gpu.format()}"
        return unknown("forward-compat", f"{text}; whether they work on {name} is not known", *rows)
    text = f"{text}, which {gpu.name} on branch {branch.number} can use"
    return passed("forward-compat", text, *rows, gpu.origin, word="needs-forward-compat")


def package_of(facts: Facts, release: MajorMinor) -> ForwardCompat | None:
    """The package of forward compatibility of a CUDA release."""
    return next((each for each in facts.forward if each.cuda == release), None)


def _forward(
    release: MajorMinor,
    gpu: Gpu | ComputeCapability,
    branch: Branch,
    facts: Facts,
    *,
    text: str,
    origin: Origin,
) -> Iterator[Reason]:
    package = package_of(facts, release)
    classes = facts.rules["forward-compat-classes"].origin
    may = gpu.forward_compat if isinstance(gpu, Gpu) else None
    listed = package is not None and branch.number in package.hosts
    doubt = _admitted(release, branch, package, facts)
    if doubt is not None and not listed and may is not False:
        yield unknown("forward-compat", f"{text}; {doubt[0]}", origin, doubt[1], classes)
        return
    if package is None or branch.number not in package.hosts:
        why = (
            f"there is no forward-compatibility package of {release.format()}"
            if package is None
            else f"branch {branch.number} is no target of {package.package}"
        )
        rows = () if package is None else (package.origin,)
        yield failed("driver-floor", f"{text}, and {why}", origin, *rows, error=TOO_OLD)
        return
    can = gpu.forward_compat if isinstance(gpu, Gpu) else None
    name = gpu.name if isinstance(gpu, Gpu) else f"a GPU of {gpu.format()}"
    rows = (origin, package.origin, classes, *((gpu.origin,) if isinstance(gpu, Gpu) else ()))
    if can is False:
        why = f"{name} has no forward compatibility"
        yield failed("driver-floor", f"{text}, and {why}", *rows, error=TOO_OLD)
    elif can is None or package.origin.is_weak:
        why = f"whether {package.package} works on {name} with branch {branch.number} is not known"
        yield unknown("forward-compat", f"{text}; {why}", *rows)
    else:
        why = f"{name} on branch {branch.number} can with the libraries of {package.package}"
        yield passed("forward-compat", f"{text}; {why}", *rows, word="needs-forward-compat")
