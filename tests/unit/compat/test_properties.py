"""What holds for every combination of the table, and for many more."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from expectations import Expected, read
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulayers.compat import query
from gpulayers.compat.judge import judge
from gpulayers.compat.model import ORDER, Judgement, Query
from gpulayers.facts.load import load
from gpulayers.facts.model import Build, Facts
from gpulayers.refs import Platform
from gpulayers.versions import Dotted, MajorMinor, Pin

pytestmark = pytest.mark.sweep
FACTS = load()
ROWS = read()
DRIVERS = tuple(
    dict.fromkeys(
        version.text
        for version in sorted(
            [
                *(b.newest for b in FACTS.branches.values() if b.newest is not None),
                *(t.native_driver for t in FACTS.toolkits if t.native_driver is not None),
                *(f.driver for f in FACTS.minor_floors.values()),
            ]
        )
    )
)
BUILDS = [
    build
    for builds in FACTS.builds.values()
    for build in builds
    if build.package in {"torch", "jax", "cupy", "onnxruntime-gpu", "tensorflow", "vllm"}
]
QUERIES = st.builds(
    lambda build, gpu, driver: Query(
        framework=Pin(build.package, build.version),
        variant=build.variant if build.variant != "unknown" else "",
        gpu=gpu,
        driver=driver,
        platform=Platform.parse(build.platform),
    ),
    st.sampled_from(BUILDS),
    st.sampled_from([gpu.name for gpu in FACTS.gpus if gpu.stack == "driver"]),
    st.sampled_from(DRIVERS),
)


def rank(found: Judgement) -> int:
    return ORDER.index(found.verdict)


@given(QUERIES)
@settings(max_examples=150, deadline=None)
def test_every_verdict_but_ok_has_a_reason_with_a_source(asked: Query) -> None:
    found = judge(asked, FACTS, with_fixes=False)
    if found.verdict != "ok":
        assert found.decisive
        assert any(used.source for reason in found.decisive for used in reason.facts)


@given(QUERIES)
@settings(max_examples=25, deadline=None)
def test_a_newer_driver_never_makes_it_worse_unless_it_dropped_the_gpu(asked: Query) -> None:
    ranks = []
    for driver in DRIVERS:
        found = judge(replace(asked, driver=driver), FACTS, with_fixes=False)
        if any(r.rule == "gpu-driver-branch" and "drives from" in r.text for r in found.reasons):
            break  # a fact says that this branch dropped the GPU
        if not _is_unlisted(found):
            ranks.append(rank(found))
    assert all(older <= newer for older, newer in pairwise(ranks)), (asked, ranks)


def _is_unlisted(found: Judgement) -> bool:
    """Branches between the targets of a package of forward compatibility are no targets."""
    words = ("is no target of", "does not name branch")
    return any(word in reason.text for word in words for reason in found.reasons)


@given(QUERIES, st.sampled_from(sorted({gpu.cc for gpu in FACTS.gpus})))
@settings(max_examples=80, deadline=None)
def test_adding_code_for_a_gpu_never_breaks(asked: Query, cc: MajorMinor) -> None:
    name = asked.framework.name
    more = tuple(
        replace(build, sms=build.sms | {cc}) if build.code == "wheel" else build
        for build in FACTS.builds[name]
    )
    richer = replace(FACTS, builds={**FACTS.builds, name: more})
    before = judge(asked, FACTS, with_fixes=False)
    assert rank(judge(asked, richer, with_fixes=False)) >= rank(before)


@pytest.mark.parametrize("row", ROWS[::5], ids=lambda row: row.id)
def test_every_fix_judged_again_is_better(row: Expected) -> None:
    asked = query.parse(row.words, FACTS)
    found = judge(asked, FACTS)
    assert (found.fixes == ()) or found.verdict != "ok"
    for fix in found.fixes:
        assert ORDER.index(fix.verdict) > rank(found)
        changed = {**row.words, **{k: v for k, v in fix.change.items() if k != "with"}}
        if {"variant", "framework"} & fix.change.keys():
            changed = {
                k: v for k, v in changed.items() if k != "cuda" or "variant" not in fix.change
            }
        if "with" in fix.change:
            name = fix.change["with"].partition("==")[0]
            kept = [text for text in row.words.get("with", ()) if not text.startswith(f"{name}==")]
            changed["with"] = [*kept, fix.change["with"]]
        again = judge(query.parse(changed, FACTS), FACTS, with_fixes=False)
        assert again.verdict == fix.verdict, fix


def test_most_of_what_is_broken_has_a_fix() -> None:
    broken = [row for row in ROWS[::3] if row.verdict == "broken"]
    fixed = [row for row in broken if judge(query.parse(row.words, FACTS), FACTS).fixes]
    assert len(fixed) > len(broken) * 0.6


def reds(facts: Facts) -> list[str]:
    """The rows that are judged otherwise with these facts."""
    found = [(row, judge(asked, facts, with_fixes=False)) for row, asked in _asked()]
    return [
        row.id
        for row, now in found
        if now.verdict != row.verdict
        or (row.rule and row.rule not in {reason.rule for reason in now.decisive})
    ]


@cache
def _asked() -> tuple[tuple[Expected, Query], ...]:
    return tuple((row, query.parse(row.words, FACTS)) for row in ROWS)


def up(version: Dotted) -> Dotted:
    *first, last = version.numbers
    return Dotted.parse(".".join(map(str, (*first, last + 1))))


def floor(major: int) -> Callable[[], Facts]:
    def moved() -> Facts:
        row = FACTS.minor_floors[major]
        return replace(
            FACTS, minor_floors={**FACTS.minor_floors, major: replace(row, driver=up(row.driver))}
        )

    return moved


def native(number: int, by: int) -> Callable[[], Facts]:
    def moved() -> Facts:
        row = FACTS.branches[number]
        cuda = MajorMinor(row.native.major, row.native.minor + by)
        return replace(FACTS, branches={**FACTS.branches, number: replace(row, native=cuda)})

    return moved


def lowest(number: int, low: MajorMinor) -> Callable[[], Facts]:
    def moved() -> Facts:
        row = FACTS.branches[number]
        return replace(FACTS, branches={**FACTS.branches, number: replace(row, low=low)})

    return moved


def build(row_id: str, change: Callable[[Build], Build]) -> Callable[[], Facts]:
    def moved() -> Facts:
        builds = {
            name: tuple(change(each) if each.origin.id == row_id else each for each in rows)
            for name, rows in FACTS.builds.items()
        }
        assert builds != FACTS.builds
        return replace(FACTS, builds=builds)

    return moved


def cudnn(row_id: str, low: MajorMinor) -> Callable[[], Facts]:
    return lambda: replace(
        FACTS,
        cudnn=tuple(
            replace(row, low=low) if row.origin.id == row_id else row for row in FACTS.cudnn
        ),
    )


def hosts(row_id: str, gone: int) -> Callable[[], Facts]:
    return lambda: replace(
        FACTS,
        forward=tuple(
            replace(row, hosts=row.hosts - {gone}) if row.origin.id == row_id else row
            for row in FACTS.forward
        ),
    )


def libc(os: str, glibc: MajorMinor) -> Callable[[], Facts]:
    return lambda: replace(FACTS, libcs={**FACTS.libcs, os: replace(FACTS.libcs[os], glibc=glibc)})


def sms(row_id: str, *, without: str) -> Callable[[], Facts]:
    gone = MajorMinor.parse(without)
    return build(row_id, lambda each: replace(each, sms=each.sms - {gone}))


MOVED = {
    "floor of CUDA 11": floor(11),
    "floor of CUDA 12": floor(12),
    "floor of CUDA 13": floor(13),
    "what 570 knows": native(570, -1),
    "what 565 knows": native(565, 1),
    "what 580 knows": native(580, -1),
    "what 595 knows": native(595, -1),
    "what 515 knows": native(515, 1),
    "what 590 drives": lowest(590, MajorMinor(5, 0)),
    "what 580 drives": lowest(580, MajorMinor(7, 5)),
    "what 515 drives": lowest(515, MajorMinor(3, 0)),
    "Volta in 2.8": sms("torch/build/2.8.0-cu128-amd64", without="7.0"),
    "Blackwell in 2.8": sms("torch/build/2.8.0-cu128-amd64", without="12.0"),
    "B200 in 2.8": sms("torch/build/2.8.0-cu128-amd64", without="10.0"),
    "Volta in 2.11": build(
        "torch/build/2.11.0-cu128-amd64",
        lambda each: replace(each, sms=frozenset({MajorMinor(7, 0)})),
    ),
    "Hopper in ONNX Runtime": build(
        "onnxruntime-gpu/build/1.23.2-amd64",
        lambda each: replace(each, exact_sms=frozenset(), ptx=frozenset()),
    ),
    "Python of 2.8": build(
        "torch/build/2.8.0-cu128-amd64", lambda each: replace(each, pythons=frozenset({"3.14"}))
    ),
    "Python of 2.9": build(
        "torch/build/2.9.1-cu128-amd64", lambda each: replace(each, pythons=frozenset({"3.13"}))
    ),
    "glibc of vLLM": build(
        "vllm/build/0.20.2-amd64", lambda each: replace(each, glibc=MajorMinor(2, 36))
    ),
    "glibc of Ubuntu 22.04": libc("ubuntu22.04", MajorMinor(2, 34)),
    "glibc of Rocky 9": libc("rockylinux9", MajorMinor(2, 35)),
    "cuDNN 9.11": cudnn("cudnn/range/9.11-9.17-cu12", MajorMinor(7, 0)),
    "cuDNN 9.10": cudnn("cudnn/range/9.10-9.10-cu12", MajorMinor(7, 5)),
    "targets of 13.0": hosts("forward-compat/package/13-0", 535),
    "targets of 13.2": hosts("forward-compat/package/13-2", 570),
    "JAX's own floor": build(
        "jax/build/0.10.2-cu13-amd64", lambda each: replace(each, low=MajorMinor(7, 0))
    ),
    "CUDA of 1.27": build(
        "onnxruntime-gpu/build/1.27.0-amd64",
        lambda each: replace(each, cuda=MajorMinor(12, 8), cuda_major=12),
    ),
    "publication of 2.15 cu126": build(
        "torch/build/2.15.0-cu126-amd64", lambda each: replace(each, published=True)
    ),
}


@pytest.mark.parametrize("moved", MOVED.values(), ids=MOVED)
def test_moving_a_boundary_turns_a_row_red(moved: Callable[[], Facts]) -> None:
    assert reds(FACTS) == []
    assert reds(moved())
