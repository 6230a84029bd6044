"""Our own NVIDIA_REQUIRE_CUDA says of every host what the judge says of it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpulayers.compat import judge, requirement
from gpulayers.compat.bases import BRANDS, satisfies
from gpulayers.compat.model import Query
from gpulayers.compat.subject import Subject, choose
from gpulayers.facts.load import load
from gpulayers.facts.model import Gpu
from gpulayers.refs import Platform
from gpulayers.versions import Dotted, MajorMinor, Pin

FACTS = load()
AMD64, ARM64 = Platform("linux", "amd64"), Platform("linux", "arm64")


def query(framework: str, cuda: str, platform: Platform = AMD64) -> Query:
    return Query(
        framework=Pin.parse(framework),
        cuda=MajorMinor.parse(cuda),
        gpu="",
        driver="",
        platform=platform,
    )


def every_driver() -> list[Dotted]:
    """All that the facts name, and the start of each branch."""
    found = {Dotted.parse(f"{number}.0") for number in FACTS.branches}
    found |= {branch.newest for branch in FACTS.branches.values() if branch.newest is not None}
    found |= {t.native_driver for t in FACTS.toolkits if t.native_driver is not None}
    found |= {floor.driver for floor in FACTS.minor_floors.values()}
    return sorted(found)


def every_gpu(platform: Platform) -> Iterator[Gpu]:
    """Each kind of GPU that is judged in a way of its own, once."""
    told = set()
    for gpu in FACTS.gpus:
        key = (gpu.cc, gpu.kind, gpu.brand, gpu.forward_compat, gpu.first_cuda, gpu.first_branch)
        if gpu.stack == "driver" and platform.machine in gpu.hosts and key not in told:
            told.add(key)
            yield gpu


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("framework", "cuda", "platform"),
    [
        ("torch==2.6.0", "12.4", AMD64),
        ("torch==2.8.0", "12.8", AMD64),
        ("torch==2.14.1", "13.0", ARM64),
        ("torch==2.15.0", "13.2", AMD64),
        ("jax==0.10.2", "12.6", AMD64),
        ("tensorflow==2.21.0", "12.9", AMD64),
        ("onnxruntime-gpu==1.31.1", "13.0", AMD64),
        ("cupy==14.2.0", "12.4", AMD64),
        ("vllm==0.33.0", "13.0", AMD64),
    ],
)
def test_it_agrees_with_the_judge_on_every_driver_and_gpu(
    framework: str, cuda: str, platform: Platform
) -> None:
    asked = query(framework, cuda, platform)
    said = requirement.of(asked, FACTS)
    subject = choose(asked, FACTS)
    assert isinstance(subject, Subject)
    compared = 0
    for gpu in every_gpu(platform):
        for driver in every_driver():
            host = judge.host_of(FACTS, gpu, driver)
            reasons = judge.rules(asked, subject, host, FACTS)
            broken = {r.rule for r in reasons if r.word in {"broken", "needs-forward-compat"}}
            if "gpu-driver-branch" in broken:
                continue  # no such host
            open_question = any(r.rule == "forward-compat" for r in reasons)
            assert host.branch is not None
            for brand in (gpu.brand,) if gpu.brand else BRANDS[gpu.kind]:
                values = {
                    "cuda": host.branch.native.format(),
                    "driver": driver.text,
                    "arch": gpu.cc.format(),
                    "brand": brand,
                }
                wanted = not broken and not open_question
                assert satisfies(said, values) == wanted, (gpu.name, driver.text, said, reasons)
                compared += 1
    assert compared > 300


@pytest.mark.parametrize(
    ("framework", "cuda", "said"),
    [
        # No code for Blackwell, and PTX that its drivers would have to compile is not there.
        ("torch==2.6.0", "12.4", "driver>=525.60.13,arch<10.0"),
        ("torch==2.8.0", "12.8", "driver>=525.60.13,arch>=7.0"),
        (
            "onnxruntime-gpu==1.31.1",
            "13.0",
            "driver>=580.65.06,arch>=7.5,arch<10.0 driver>=580.65.06,arch>=12.0,arch<12.1",
        ),
        ("torch==2.99.0", "12.8", ""),
    ],
)
def test_what_it_says(framework: str, cuda: str, said: str) -> None:
    assert requirement.of(query(framework, cuda), FACTS) == said


def test_a_driver_with_a_zero_before_its_patch_is_compared_as_a_number() -> None:
    assert satisfies("driver>=580.65.06", {"driver": "580.65.6"})
    assert not satisfies("driver>=580.65.06", {"driver": "580.65.05"})


def test_no_build_asks_for_a_newer_driver_than_its_cuda_does() -> None:
    """Floors of a framework's own are no rule of the judge, as none says more than CUDA's."""
    for builds in FACTS.builds.values():
        for build in builds:
            floor = FACTS.minor_floors.get(build.cuda_major or 0)
            if build.floor is not None and floor is not None:
                assert build.floor <= floor.driver, build.origin.id


def test_for_arm64_it_leaves_out_the_jetson_boards_that_no_jetpack_runs_it_on() -> None:
    said = requirement.of(query("torch==2.11.0", "13.0", ARM64), FACTS)
    terms = [term for term in said.split() if satisfies(term, {"driver": "999", "arch": "8.7"})]
    assert terms == [], said
    assert satisfies(said, {"driver": "580.95.05", "arch": "9.0"})
    assert satisfies(said, {"driver": "580.95.05", "arch": "8.0"})


def test_what_runs_nowhere_asks_for_what_no_host_has() -> None:
    nowhere = replace(
        FACTS,
        builds={
            "torch": tuple(
                replace(build, sms=frozenset(), ptx=frozenset()) for build in FACTS.builds["torch"]
            )
        },
    )
    said = requirement.of(query("torch==2.8.0", "12.8"), nowhere)
    assert said == requirement.NEVER
    assert not any(satisfies(said, {"arch": gpu.cc.format()}) for gpu in FACTS.gpus)
