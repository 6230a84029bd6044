"""Packages of an OS's archive: what the archive is asked, and what its answer means."""

from pathlib import Path

import pytest
from build_fakes import FakeBuildx, failure
from lock_samples import hash_of

from gpulayers.engine.buildx import Secret
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.lock import packages
from gpulayers.lock.model import Package

BASE = "127.0.0.1:5000/acme/base@sha256:0"
SECRET = Secret(id="apt", source=Path("/in/apt.sources"))


def line(name: str, version: str = "1.0") -> str:
    return f"{name} {version} {hash_of(name)}\n"


def ask(buildx: FakeBuildx, *names: str, with_needs: bool = False) -> tuple[Package, ...]:
    return packages.ask(
        buildx, BASE, names, secrets=[SECRET], with_needs=with_needs, platform="linux/amd64"
    )


def test_no_names_need_no_question() -> None:
    buildx = FakeBuildx(answer=lambda _: failure())
    assert ask(buildx) == ()
    assert buildx.calls == []


def test_an_answer_is_sorted_and_lines_of_another_shape_are_passed_over() -> None:
    text = line("zlib1g", "1:1.2") + "W: noise\n\n" + line("libbz2-1.0", "1.0.8-5+b1")
    buildx = FakeBuildx(answer=lambda _: {"packages": text})
    found = ask(buildx, "zlib1g", "libbz2-1.0")
    assert [(one.name, one.version) for one in found] == [
        ("libbz2-1.0", "1.0.8-5+b1"),
        ("zlib1g", "1:1.2"),
    ]
    assert found[0].sha256 == hash_of("libbz2-1.0")


def test_the_archive_is_asked_inside_the_base_that_takes_them_and_always_anew() -> None:
    buildx = FakeBuildx(answer=lambda _: {"packages": line("tini")})
    ask(buildx, "tini")
    (call,) = buildx.calls
    assert call.contexts == {"base": f"docker-image://{BASE}"}
    assert (call.no_cache, call.platform, call.secrets) == (True, "linux/amd64", (SECRET,))
    assert "for n in tini; do" in call.dockerfile
    assert "id=ca,required=false," in call.dockerfile
    assert "id=apt,required=true,target=/etc/apt/sources.list.d/" in call.dockerfile


def test_the_question_has_no_brace_left_of_its_template() -> None:
    buildx = FakeBuildx(answer=lambda _: {"packages": line("tini")})
    ask(buildx, "tini")
    ask(buildx, "tini", with_needs=True)
    for call in buildx.calls:
        assert "{{" not in call.dockerfile
        assert "}}" not in call.dockerfile
        assert "{ print n, v, $2; exit }" in call.dockerfile


def test_with_what_they_need_the_answer_may_lack_what_the_base_has() -> None:
    buildx = FakeBuildx(answer=lambda _: {"packages": line("libssl3")})
    assert [one.name for one in ask(buildx, "ca-certificates", with_needs=True)] == ["libssl3"]


def test_the_plan_of_apt_is_not_read_through_a_pipe_that_hides_its_failure() -> None:
    buildx = FakeBuildx(answer=lambda _: {"packages": ""})
    ask(buildx, "tini", with_needs=True)
    (planning,) = [x for x in buildx.calls[0].dockerfile.splitlines() if "--simulate" in x]
    assert planning.endswith("install tini >/tmp/plan")


def test_a_package_that_the_answer_lacks_is_no_package() -> None:
    buildx = FakeBuildx(answer=lambda _: {"packages": line("tini")})
    with pytest.raises(ProjectError, match="has no package gone, other"):
        ask(buildx, "tini", "other", "gone")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("E: Unable to locate package gone", ProjectError),
        ("E: Package 'gone' has no installation candidate", ProjectError),
        ("E: Failed to fetch http://deb.example/x  Could not resolve", RemoteError),
        ("ERROR: failed to solve: base: not found", RemoteError),
    ],
)
def test_an_archive_that_refuses_is_told_by_who_can_mend_it(
    said: str, kind: type[Exception]
) -> None:
    buildx = FakeBuildx(answer=lambda _: failure(said, "process did not end: exit code: 100"))
    with pytest.raises(kind, match="did not give gone:") as caught:
        ask(buildx, "gone", with_needs=True)
    assert f"  {said}" in str(caught.value)
