"""The tools that compare facts with wheels."""

import zipfile
from pathlib import Path

import pytest
from elf_samples import entry, shared_object

import read_sass
import refresh_facts
from gpulayers import fatbin
from refresh_facts import Seen, changed, seen, together

ROW = """\
[[build]]
id = "x/build/1-amd64"
version = "1"
pythons = []
glibc = "unknown"
source = "PyPI x 1"
read = "2026-01-01"

[[build]]
id = "x/build/2-amd64"
version = "2"
pythons = []
glibc = "unknown"
source = "PyPI x 2"
read = "2026-01-01"
"""


def names(*tags: str) -> list[str]:
    return [f"x-1-{tag}.whl" for tag in tags]


def test_the_names_of_wheels_say_pythons_and_the_glibc_of_a_platform() -> None:
    files = names(
        "cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64",
        "cp39-cp39-manylinux2014_x86_64",
        "cp313-cp313t-manylinux_2_28_x86_64",
        "cp312-cp312-manylinux_2_34_aarch64",
        "cp312-cp312-win_amd64",
    )
    assert seen(files, "linux/amd64") == Seen(pythons=("3.9", "3.11", "3.13t"), glibc="2.28")
    assert seen(files, "linux/arm64") == Seen(pythons=("3.12",), glibc="2.34")


def test_one_wheel_for_many_pythons_leaves_them_open() -> None:
    files = names("cp38-abi3-manylinux_2_28_x86_64")
    assert seen(files, "linux/amd64") == Seen(pythons=(), glibc="2.28")
    assert seen(files, "linux/arm64") is None


def test_of_two_packages_the_later_glibc_and_the_pythons_of_both_hold() -> None:
    one = Seen(pythons=("3.10", "3.11"), glibc="2.9")
    other = Seen(pythons=("3.11", "3.12"), glibc="2.17")
    assert together([one, other]) == Seen(pythons=("3.11",), glibc="2.17")
    assert together([one, None]) is None


def test_only_the_row_that_is_meant_is_written_with_day_and_source() -> None:
    row: refresh_facts.Row = {"id": "x/build/2-amd64", "source": "PyPI x 2"}
    new = {"pythons": ["3.11"], "glibc": "2.28"}
    text = changed(ROW, row, new, day="2026-12-01", source="names of its wheels")
    first, second = text.split("\n\n")
    assert first == ROW.partition("\n\n")[0]
    assert 'pythons = ["3.11"]\nglibc = "2.28"\n' in second
    assert 'source = "PyPI x 2 ; names of its wheels"\nread = "2026-12-01"\n' in second


def test_a_row_that_lacks_the_line_is_told() -> None:
    with pytest.raises(ValueError, match="wanted one line of cudnn, found 0"):
        changed(ROW, {"id": "x/build/1-amd64", "source": ""}, {"cudnn": ""}, day="", source="")


@pytest.mark.parametrize(
    ("row", "packages"),
    [
        ({"package": "torch", "cuda_major": 12}, ("torch",)),
        ({"package": "cupy", "cuda_major": 13}, ("cupy-cuda13x",)),
        ({"package": "jax", "cuda_major": 12}, ("jaxlib", "jax-cuda12-plugin")),
        ({"package": "jax", "cuda_major": 0}, ("jaxlib",)),
    ],
)
def test_the_packages_with_the_wheels_are_asked(
    row: dict[str, object], packages: tuple[str, ...]
) -> None:
    assert refresh_facts.distributions(row) == packages


def test_the_code_of_a_wheel_is_read_from_its_shared_objects(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    exact = fatbin.EXACT
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "x/a.so.1", shared_object([entry(2, 80), entry(2, 90, exact)], [entry(1, 90)])
        )
        archive.writestr("x/b.so", shared_object([entry(2, 120)]))
        archive.writestr("x/plain.so", b"no ELF file")
        archive.writestr("x/empty.so", b"")
        archive.writestr("x/c.py", "x = 1")
    code, files = read_sass.of_wheel(wheel)
    assert (code.sms, code.exact_sms, code.ptx) == ({80, 120}, {90}, {90})
    assert files == ["x/a.so.1", "x/b.so"]
    assert read_sass.shown([*code.sms]) == '["8.0", "12.0"]'
