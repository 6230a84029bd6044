"""Image references, digests, tags and platforms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulayers.errors import ProjectError
from gpulayers.refs import ImageRef, Platform, RefError, is_digest, is_repository, is_tag

DIGEST = f"sha256:{'0123456789abcdef' * 4}"

REFS = st.builds(
    ImageRef,
    registry=st.sampled_from(["docker.io", "localhost", "127.0.0.1:5000", "[::1]:5000", "a.b:1"]),
    repository=st.from_regex(r"[a-z0-9]{1,4}([._-][a-z0-9]{1,4})?/[a-z]{1,5}", fullmatch=True),
    tag=st.just("") | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True),
    digest=st.sampled_from(["", DIGEST]),
)


@given(REFS)
def test_what_is_formatted_is_parsed_to_the_same(ref: ImageRef) -> None:
    assert ImageRef.parse(ref.format()) == ref


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("debian", "docker.io/library/debian"),
        ("debian:12-slim", "docker.io/library/debian:12-slim"),
        ("nvidia/cuda:12.8.1-base", "docker.io/nvidia/cuda:12.8.1-base"),
        ("docker.io/debian:12", "docker.io/library/debian:12"),
        ("localhost/gpu:x", "localhost/gpu:x"),
        ("127.0.0.1:5000/acme/gpu", "127.0.0.1:5000/acme/gpu"),
        (f"ghcr.io/acme/gpu:x@{DIGEST}", f"ghcr.io/acme/gpu:x@{DIGEST}"),
    ],
)
def test_short_names_are_made_whole_as_docker_does(text: str, whole: str) -> None:
    assert ImageRef.parse(text).format() == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Debian",
        "debian:",
        "debian:a b",
        "debian:-x",
        f"debian:{'x' * 129}",
        "debian@sha256:12",
        f"debian@{DIGEST.upper()}",
        "ghcr.io/",
        "https://ghcr.io/acme/gpu",
        "a//b",
        "debian\n",
        "debian:12\n",
    ],
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(RefError, match="not"):
        ImageRef.parse(text)


def test_a_reference_moves_to_a_tag_or_a_digest_and_keeps_its_name() -> None:
    ref = ImageRef.parse(f"ghcr.io/acme/gpu:x@{DIGEST}")
    assert ref.name == "ghcr.io/acme/gpu"
    assert ref.with_tag("y").format() == "ghcr.io/acme/gpu:y"
    assert ref.with_digest(DIGEST).format() == f"ghcr.io/acme/gpu@{DIGEST}"


@pytest.mark.parametrize(
    ("text", "answer"), [(DIGEST, True), (DIGEST[:-1], False), (f"{DIGEST}\n", False), ("", False)]
)
def test_a_digest_is_sha256_and_64_hex_digits(text: str, answer: bool) -> None:
    assert is_digest(text) is answer


@pytest.mark.parametrize("text", ["a", "_a", "A.b-c_d", "1" * 128])
def test_tags(text: str) -> None:
    assert is_tag(text)


@pytest.mark.parametrize("text", ["", ".a", "-a", "a+b", "1" * 129, "a\n"])
def test_no_tags(text: str) -> None:
    assert not is_tag(text)


@pytest.mark.parametrize("text", ["a", "a/b", "a-b", "a--b", "a__b", "a.b/c_d", "0"])
def test_repositories(text: str) -> None:
    assert is_repository(text)


@pytest.mark.parametrize("text", ["", "A", "a..b", "a___b", "a/", "/a", "-a", "a-", "a:b", "a\n"])
def test_no_repositories(text: str) -> None:
    assert not is_repository(text)


@pytest.mark.parametrize(
    ("text", "machine"), [("linux/amd64", "x86_64"), ("linux/arm64", "aarch64")]
)
def test_platforms_know_what_uname_prints_there(text: str, machine: str) -> None:
    platform = Platform.parse(text)
    assert (platform.format(), platform.machine) == (text, machine)


@pytest.mark.parametrize("text", ["windows/amd64", "linux", "linux/arm64/v8", "amd64", ""])
def test_other_platforms_are_refused_with_the_ones_there_are(text: str) -> None:
    with pytest.raises(RefError, match="wanted linux/amd64 or linux/arm64"):
        Platform.parse(text)


def test_a_wrong_reference_is_a_wrong_project_file() -> None:
    assert issubclass(RefError, ProjectError)
