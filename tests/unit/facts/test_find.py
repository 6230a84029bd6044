"""GPUs, drivers and systems by the words that people use."""

import pytest

from gpulayers.facts import find
from gpulayers.facts.load import load
from gpulayers.facts.model import Gpu, JetPack
from gpulayers.versions import Dotted, MajorMinor

FACTS = load()
SPELLED = {
    "A100-80GB": "A100-80GB",
    "a100 80gb": "A100-80GB",
    "A100 80 GB": "A100-80GB",
    "NVIDIA A100-SXM4-80GB": "A100-80GB",
    "H100 NVL": "H100 NVL",
    "NVIDIA H100 80GB HBM3": "H100",
    "RTX 4090": "GeForce RTX 4090",
    "geforce rtx4090": "GeForce RTX 4090",
    "4090": "GeForce RTX 4090",
    "Tesla V100-SXM2-16GB": "V100",
    "Tesla T4": "T4",
    "GB10": "DGX Spark GB10",
    "orin": "Jetson AGX Orin",
    "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
    "RTX A6000": "RTX A6000",
    "GTX 1080Ti": "GeForce GTX 1080 Ti",
    "nvidia-tesla-t4": "T4",
    "NVIDIA GH200 480GB": "GH200",
    "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": "A100-80GB",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX PRO 6000 Blackwell",
    "RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell Server Edition",
    "A100": "A100-40GB",
    "H100": "H100",
}


@pytest.mark.parametrize(("text", "name"), SPELLED.items(), ids=SPELLED)
def test_a_gpu_is_known_by_what_people_and_tools_call_it(text: str, name: str) -> None:
    found = find.gpu(FACTS, text)
    assert isinstance(found, Gpu)
    assert found.name == name


@pytest.mark.parametrize("text", ["8.9", "sm_89", "SM89", "compute_89", "cc8.9"])
def test_a_compute_capability_does_for_a_gpu(text: str) -> None:
    assert find.gpu(FACTS, text) == MajorMinor(8, 9)
    assert find.gpu(FACTS, "sm_120") == MajorMinor(12, 0)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("H10", "H100"),
        ("RTX 409", "RTX 4090"),
        ("L400", "L40"),
        ("RTX 6000", "6000"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090"),
        ("H200 NVL", "H200"),
        ("Orin NX", "Orin Nano"),
    ],
)
def test_an_unknown_gpu_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(find.FactError, match="unknown GPU") as caught:
        find.gpu(FACTS, text)
    assert nearest in caught.value.hint


def test_every_known_gpu_is_found_by_its_own_name() -> None:
    for gpu in FACTS.gpus:
        assert find.gpu(FACTS, gpu.name) == gpu
        assert find.gpu(FACTS, f"NVIDIA {gpu.name.upper()}") == gpu


def test_a_driver_is_a_version_a_branch_or_a_jetpack() -> None:
    assert find.driver(FACTS, "535.183.01") == Dotted.parse("535.183.01")
    assert find.driver(FACTS, "535") == Dotted.parse("535")
    for text in ("jetpack99", "new", ""):
        with pytest.raises(find.FactError, match="unknown"):
            find.driver(FACTS, text)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("jetpack6", "6.0"),
        ("JetPack 6.1", "6.1"),
        ("jetpack-6.2.1", "6.2"),
        ("jetpack5.0", "5.1"),
        ("jetpack7.1", "7.0"),
        ("jetpack 7.2", "7.2"),
    ],
)
def test_a_jetpack_is_known_by_its_release_or_its_major(text: str, version: str) -> None:
    found = find.driver(FACTS, text)
    assert isinstance(found, JetPack)
    assert found.version == version


def test_rubin_is_not_taken_for_blackwell() -> None:
    names = {"10.7": "Rubin", "10.3": "Blackwell", "12.1": "Blackwell", "8.9": "Ada Lovelace"}
    for text, name in names.items():
        major, minor = text.split(".")
        found = find.generation_of(FACTS, MajorMinor(int(major), int(minor)))
        assert found is not None
        assert found.name == name
    assert find.generation_of(FACTS, MajorMinor(8, 8)) is None


def test_a_driver_newer_than_all_is_of_the_newest_branch() -> None:
    newest = max(FACTS.branches)
    found = find.branch_of(FACTS, Dotted.parse("999.1"))
    assert found is not None
    assert found.number == newest
    assert find.branch_of(FACTS, Dotted.parse("536.1")) is None


def test_an_os_of_our_own_name_has_the_glibc_of_what_it_ends_with() -> None:
    for name in ("ubuntu22.04", "nvidia12.8-ubuntu22.04"):
        found = find.libc_of(FACTS, name)
        assert found is not None
        assert found.glibc == MajorMinor(2, 35)
    assert find.libc_of(FACTS, "plan9") is None
