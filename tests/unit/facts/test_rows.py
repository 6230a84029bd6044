"""The facts themselves: what must hold of every row, whatever it says."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gpulayers.facts.load import DATA, load
from gpulayers.facts.model import Build, Confidence, Facts
from gpulayers.versions import MajorMinor

IMPORTED = Path(__file__).with_name("imported.txt")
ORDER = get_args(Confidence)  # the strongest first
FACTS: Facts = load()


def rows() -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = []
    for path in sorted(DATA.glob("*.toml")):
        for table in tomllib.loads(path.read_text("utf-8")).values():
            found += table
    return found


ROWS = rows()


def builds() -> list[Build]:
    return [build for found in FACTS.builds.values() for build in found]


def test_every_row_has_an_id_of_its_own_a_source_and_a_day() -> None:
    ids = [str(row["id"]) for row in ROWS]
    assert len(ids) == len(set(ids))
    assert [row["id"] for row in ROWS if not row["source"]] == []
    day = re.compile(r"20\d\d-\d\d-\d\d")
    assert [row["id"] for row in ROWS if not day.fullmatch(str(row["read"]))] == []


def risen(row: Mapping[str, object], imported: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a row is surer than it was imported, by the source that it was imported with."""
    was, digest = imported.get(str(row["id"]), ("wheel", ""))
    same = hashlib.sha256(str(row["source"]).encode()).hexdigest().startswith(digest)
    return same and ORDER.index(str(row["confidence"])) < ORDER.index(was)


def test_confidence_rises_only_with_a_new_source() -> None:
    lines = [line.split() for line in IMPORTED.read_text("utf-8").splitlines()]
    imported = {name: (confidence, digest) for name, confidence, digest in lines}
    assert [row["id"] for row in ROWS if risen(row, imported)] == []
    assert imported.keys() <= {row["id"] for row in ROWS}
    weak = next(row for row in ROWS if row["id"] == "forward-compat/package/13-5")
    assert risen({**weak, "confidence": "doc"}, imported)
    assert not risen({**weak, "confidence": "doc", "source": "NVIDIA's table, v620"}, imported)


def test_branches_know_more_cuda_the_newer_they_are() -> None:
    branches = list(FACTS.branches.values())
    assert [b.number for b in branches] == sorted(b.number for b in branches)
    assert [b.native for b in branches] == sorted(b.native for b in branches)
    assert [b.low for b in branches] == sorted(b.low for b in branches)
    assert [b for b in branches if b.newest and b.newest.numbers[0] != b.number] == []


def test_a_toolkit_ships_with_a_driver_that_knows_it() -> None:
    for toolkit in FACTS.toolkits:
        if toolkit.native_driver is not None:
            branch = FACTS.branches[toolkit.native_driver.numbers[0]]
            assert branch.native >= toolkit.release, toolkit.origin.id
            assert branch.newest is not None
            assert branch.newest >= toolkit.native_driver, toolkit.origin.id


def test_the_floor_of_a_major_is_below_what_its_toolkits_ship_with() -> None:
    # CUDA 11.0 is older than minor-version compatibility: its drivers are below the floor.
    for toolkit in FACTS.toolkits:
        floor = FACTS.minor_floors[toolkit.version.numbers[0]].driver
        if toolkit.native_driver is not None and toolkit.release != MajorMinor(11, 0):
            assert toolkit.native_driver >= floor, toolkit.origin.id


def test_a_package_of_forward_compatibility_is_for_older_branches() -> None:
    for package in FACTS.forward:
        known = {
            number for number, branch in FACTS.branches.items() if branch.native < package.cuda
        }
        assert package.hosts <= known | {570}, package.origin.id  # 12.9 came with 575
        assert package.admits <= FACTS.branches.keys()
        assert not package.admits & package.hosts


def test_a_newer_jetpack_knows_more_cuda() -> None:
    versions = [Version(each.version) for each in FACTS.jetpacks]
    assert versions == sorted(versions)
    natives = [each.native for each in FACTS.jetpacks]
    assert natives == sorted(natives)


def test_a_gpu_of_jetson_has_no_branch_of_the_desktop_driver() -> None:
    driven = {cc for each in FACTS.jetpacks for cc in each.gpus}
    for gpu in FACTS.gpus:
        assert (gpu.stack == "jetpack") == (gpu.kind == "jetson")
        if gpu.stack == "jetpack":
            assert gpu.cc in driven, gpu.name
            assert (gpu.last_branch, gpu.last_cuda, gpu.forward_compat) == (None, None, None)


def test_a_brand_is_one_that_requirements_can_name() -> None:
    brands = {"", "tesla", "nvidia", "nvidiartx", "quadro", "quadrortx"}
    for gpu in FACTS.gpus:
        own = {"geforce": {"geforce"}, "titan": {"titan"}}.get(gpu.kind, brands)
        assert gpu.brand in own, gpu.name


def test_a_requirement_starts_with_its_first_term_and_names_its_branches() -> None:
    for image in FACTS.images:
        read = image.require_first != "unknown"
        assert bool(image.requirement) == read
        if read:
            assert image.requirement.split(" ")[0] == image.require_first
            named = {int(n) for n in re.findall(r"driver>=(\d+)", image.requirement)}
            assert named == set(image.require_branches), image.origin.id
            old = image.version.release < MajorMinor(12, 5)
            assert ("brand=geforce," in image.requirement) == (old and max(named) >= 470)


def test_the_default_of_a_release_is_one_build_a_platform() -> None:
    defaults = [(b.package, b.version, b.platform) for b in builds() if b.is_default]
    assert len(defaults) == len(set(defaults))


def test_the_builds_of_a_release_differ_in_variant_or_platform() -> None:
    named = [
        (b.package, b.version, b.variant, b.platform) for b in builds() if b.package != "tensorrt"
    ]
    assert len(named) == len(set(named))


def test_only_plain_installs_are_defaults() -> None:
    assert [b.origin.id for b in builds() if b.is_default and b.index != "pypi"] == []


def test_a_build_with_code_in_its_wheel_lists_it() -> None:
    for build in builds():
        has_code = bool(build.sms or build.exact_sms or build.ptx)
        assert has_code == (build.code == "wheel" and build.published), build.origin.id


def test_a_build_says_its_cuda_alike_in_each_field() -> None:
    for build in builds():
        if build.cuda is not None:
            assert build.cuda.major == build.cuda_major, build.origin.id
            assert build.variant in {f"cu{build.cuda.compact}", f"cu{build.cuda_major}"}
        if build.toolkit is not None:
            assert build.toolkit.release == build.cuda, build.origin.id
            assert build.toolkit in {each.version for each in FACTS.toolkits}, build.origin.id
        assert (build.variant == "cpu") == (build.cuda_major == 0)
        assert (build.code == "none") == (build.variant == "cpu")


def test_pins_and_pairings_are_specifiers() -> None:
    wanted = [text for build in builds() for text in build.pins.values()]
    wanted += [pairing.wants for pairing in FACTS.pairings]
    for text in wanted:
        assert str(SpecifierSet(text)) or not text


def test_a_weak_row_says_so() -> None:
    row = FACTS.forward[-1]
    assert row.origin.is_weak
    assert not replace(row.origin, confidence="secondary").is_weak
