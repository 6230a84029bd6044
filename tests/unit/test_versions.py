"""Versions as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulayers.errors import ProjectError
from gpulayers.versions import Dotted, MajorMinor, Pin, VersionError

NUMBERS = st.integers(0, 99)


@given(st.integers(1, 99), NUMBERS)
def test_a_release_line_is_parsed_to_what_was_formatted(major: int, minor: int) -> None:
    line = MajorMinor(major, minor)
    assert MajorMinor.parse(line.format()) == line


@given(st.integers(1, 99), NUMBERS, st.integers(1, 99), NUMBERS)
def test_release_lines_are_ordered_as_numbers(a: int, b: int, c: int, d: int) -> None:
    assert (MajorMinor(a, b) < MajorMinor(c, d)) is ((a, b) < (c, d))


def test_twelve_ten_is_newer_than_twelve_eight() -> None:
    assert MajorMinor.parse("12.10") > MajorMinor.parse("12.8")


def test_the_compact_form_has_no_dot() -> None:
    assert MajorMinor.parse("12.8").compact == "128"


@pytest.mark.parametrize(
    "text", ["", "12", "12.8.1", "v12.8", "12.08", "012.8", "0.1", "12.", "12.8\n", "12.x", " 12.8"]
)
def test_what_is_no_release_line_is_refused(text: str) -> None:
    with pytest.raises(VersionError, match=r"is not MAJOR\.MINOR"):
        MajorMinor.parse(text)


@given(
    st.from_regex(r"[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(\.post[0-9])?(\+cu[0-9]{3})?", fullmatch=True),
)
def test_a_pin_is_parsed_to_what_was_formatted(name: str, version: str) -> None:
    pin = Pin(name, version)
    assert Pin.parse(pin.format()) == pin


@pytest.mark.parametrize(
    "text",
    ["torch", "torch=2.8", "Torch==2.8.0", "torch_x==1", "==2.8.0", "torch >= 2.8", "tor ch==1"],
)
def test_what_is_no_pin_is_refused(text: str) -> None:
    with pytest.raises(VersionError, match="is not NAME==VERSION"):
        Pin.parse(text)


@pytest.mark.parametrize(
    "version", ["", "2.8.*", "latest", "2.8.0,<3", "2.8.0;x", " 2.8.0", "2.8.0 ", "2.8.0\n"]
)
def test_a_pin_without_an_exact_version_is_refused(version: str) -> None:
    with pytest.raises(VersionError, match="is not a PEP 440 version"):
        Pin.parse(f"torch=={version}")


def test_a_wrong_version_is_a_wrong_project_file() -> None:
    assert issubclass(VersionError, ProjectError)


def test_dotted_versions_compare_number_by_number() -> None:
    texts = ["535", "535.54.03", "535.183.01", "570.26", "570.124.06", "580.65.06"]
    assert [one.text for one in sorted(map(Dotted.parse, reversed(texts)))] == texts
    assert Dotted.parse("450.80.02") == Dotted.parse("450.80.2")
    assert Dotted.parse("12.8.1").release == MajorMinor(12, 8)


@pytest.mark.parametrize("text", ["", "535.", ".5", "5a", "535-1", "٣.1"])
def test_a_dotted_version_is_only_numbers_and_dots(text: str) -> None:
    with pytest.raises(VersionError, match="not a version of numbers and dots"):
        Dotted.parse(text)
