"""OS bases: the first source that answers, and all answers when none does."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from build_fakes import FakeBuildx, failure
from lock_samples import AMD64, wheel
from registry_fakes import CONFIG, HOST, INDEX, MANIFEST, ROOT, FakeTransport, answer, client, held

from gpulayers import bases
from gpulayers.bases import Workshop
from gpulayers.engine.registry import Response, digest_of
from gpulayers.engine.registry.model import OCI_INDEX
from gpulayers.errors import RemoteError, ToolError
from gpulayers.lock.model import Lock, LockedBase
from gpulayers.refs import Platform

pytestmark = pytest.mark.usefixtures("own_processes")

NO_DEBIAN = Path("/nowhere")
MIRROR = "deb http://mirror.example/debian bookworm main\n"
HELD = f"{HOST}/mirror/debian:12-slim"
GONE = f"{HOST}/mirror/gone:12"


COPY = f"{HOST}/acme/base:debian12-{digest_of(MANIFEST)[7:19]}"
COPY_URL = f"{ROOT}/acme/base/manifests/debian12-{digest_of(MANIFEST)[7:19]}"


def copied() -> dict[str, Response | list[Response | Exception]]:
    """The copy is there from the second time on that somebody looks."""
    return {f"HEAD {COPY_URL}": [answer(404), held(MANIFEST)]}


@dataclass
class Bench:
    """A workshop on some machine; its words are kept."""

    machine: Path
    buildx: FakeBuildx = field(default_factory=lambda: FakeBuildx(answer=lambda _: {}))
    said: list[str] = field(default_factory=list)
    kept: dict[str, Response | list[Response | Exception]] = field(default_factory=dict)

    def workshop(self, *, suffix: str = "") -> Workshop:
        config = digest_of(CONFIG)
        table: dict[str, Response | list[Response | Exception]] = {
            f"GET {ROOT}/mirror/debian/manifests/12-slim": held(INDEX, OCI_INDEX),
            f"GET {ROOT}/mirror/debian/manifests/{digest_of(MANIFEST)}": held(MANIFEST),
            f"GET {ROOT}/mirror/debian/blobs/{config}": held(CONFIG),
        }
        return Workshop(
            registry=client(FakeTransport({**table, **self.kept})),
            buildx=self.buildx,
            root=f"{HOST}/acme",
            say=self.said.append,
            machine=self.machine,
            suffix=suffix,
        )


def test_a_base_of_a_registry_is_the_manifest_of_the_platform() -> None:
    bench = Bench(NO_DEBIAN, kept=copied())
    base = bases.resolve("debian12", [HELD], AMD64, bench.workshop())
    assert base == LockedBase(
        os="debian12",
        platform=AMD64,
        source=HELD,
        repository=f"{HOST}/mirror/debian",
        digest=digest_of(MANIFEST),
        suite="",
    )
    assert bench.said == [f"base debian12: {HELD} ({base.digest[:19]})"]


def test_what_would_lead_programs_to_other_files_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "PATH": "/bin",
        "PYTHONPATH": "/srv",
        "LD_LIBRARY_PATH": "",
        "PIP_INDEX_URL": "x",
    }
    workshop = Bench(NO_DEBIAN).workshop()
    read = workshop.registry.config
    monkeypatch.setattr(
        workshop.registry, "config", lambda *at: replace(read(*at), env=environment)
    )
    base = bases.resolve("debian12", [HELD], AMD64, workshop)
    assert base.blanks == ("LD_LIBRARY_PATH", "PYTHONPATH")


def test_a_base_of_another_registry_is_copied_below_the_root_once() -> None:
    bench = Bench(NO_DEBIAN, kept=copied())
    workshop = bench.workshop()
    base = bases.resolve("debian12", [HELD], AMD64, workshop)
    assert bench.buildx.copied == [(f"{HOST}/mirror/debian@{base.digest}", COPY)]
    bases.resolve("debian12", [HELD], AMD64, workshop)
    assert len(bench.buildx.copied) == 1


def test_a_lock_that_is_only_checked_copies_nothing() -> None:
    bench = Bench(NO_DEBIAN)
    bases.resolve("debian12", [HELD], AMD64, bench.workshop(suffix="-checked"))
    assert bench.buildx.copied == []


@pytest.mark.parametrize("refused", ["denied: no write access", ""])
def test_a_base_that_could_not_be_copied_is_told_and_locked_all_the_same(refused: str) -> None:
    bench = Bench(NO_DEBIAN, buildx=FakeBuildx(answer=lambda _: {}, refused=refused))
    assert bases.resolve("debian12", [HELD], AMD64, bench.workshop()).source == HELD
    assert bench.said[1] == (
        f"base debian12: no copy in {HOST}/acme/base ({refused or 'it is not there'}):"
        f" builds need {HOST}/mirror/debian"
    )


def test_builds_take_the_copy_where_there_is_one() -> None:
    workshop = Bench(NO_DEBIAN, kept=copied()).workshop()
    base = bases.resolve("debian12", [HELD], AMD64, workshop)
    lock = Lock(
        inputs="i",
        uv=wheel("uv", "0.9.0"),
        bases=(base,),
        packages=(),
        pythons=(),
        wheels={},
        closures=(),
        models=(),
    )
    by_digest = f"HEAD {ROOT}/acme/base/manifests/{base.digest}"
    there = Bench(NO_DEBIAN, kept={by_digest: held(MANIFEST)}).workshop()
    (nearer,) = bases.nearest_copies(lock, there.root, there.registry).bases
    assert bases.reference(nearer, there.root) == f"{HOST}/acme/base@{base.digest}"
    gone = Bench(NO_DEBIAN).workshop()
    assert bases.nearest_copies(lock, gone.root, gone.registry) is lock


def test_a_source_that_does_not_answer_is_passed_over_and_named() -> None:
    bench = Bench(NO_DEBIAN)
    base = bases.resolve("debian12", [GONE, HELD], AMD64, bench.workshop())
    assert base.source == HELD
    assert bench.said[0].startswith(f"base debian12: passed over {GONE}: ")


def test_when_none_answers_all_their_answers_are_told() -> None:
    with pytest.raises(RemoteError, match="no source gave a base for debian12") as caught:
        bases.resolve("debian12", [GONE, f"{HOST}/other:1"], AMD64, Bench(NO_DEBIAN).workshop())
    assert f"  {GONE}: " in str(caught.value)
    assert f"  {HOST}/other:1: " in str(caught.value)
    assert caught.value.hint.startswith("add a source to [base.debian12]")


def test_a_platform_that_the_image_lacks_is_no_answer() -> None:
    with pytest.raises(RemoteError, match="linux/arm64"):
        bases.resolve("debian12", [HELD], Platform("linux", "arm64"), Bench(NO_DEBIAN).workshop())


def test_a_base_is_pulled_from_where_it_was_found_or_where_we_keep_ours() -> None:
    base = bases.resolve("debian12", [HELD], AMD64, Bench(NO_DEBIAN).workshop())
    digest = base.digest
    assert bases.reference(base, "r.example/acme") == f"{HOST}/mirror/debian@{digest}"
    ours = LockedBase(
        os="debian12", platform=AMD64, source="bootstrap:s", repository="", digest=digest, suite="s"
    )
    assert bases.reference(ours, "r.example/acme") == f"r.example/acme/base@{digest}"


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with mirrors and a stand-in for mmdebstrap, which keeps what it was asked."""
    (tmp_path / "etc" / "apt").mkdir(parents=True)
    (tmp_path / "etc" / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    (tmp_path / "etc" / "apt" / "sources.list").write_text(MIRROR)
    program = tmp_path / "mmdebstrap"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/asked\n"
        'for word; do case $word in /*/base.tar) echo tar >"$word" ;; /*.sources) '
        f'cp "$word" {tmp_path}/sources ;; esac; done\n'
        f'echo "$SOURCE_DATE_EPOCH" >{tmp_path}/epoch\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_a_base_is_made_from_the_machines_mirrors_and_pushed_below_the_root(debian: Path) -> None:
    bench = Bench(debian)
    base = bases.resolve("debian12", ["bootstrap:bookworm"], AMD64, bench.workshop())
    assert (base.repository, base.suite, base.digest) == ("", "bookworm", bench.buildx.digest)
    (call,) = bench.buildx.calls
    assert "push=true" in call.output
    assert call.output.endswith(f",name={HOST}/acme/base:debian12")
    assert call.dockerfile == 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n'
    assert call.arguments == {"SOURCE_DATE_EPOCH": "315532800"}
    asked = (debian / "asked").read_text().splitlines()
    assert "--architectures=amd64" in asked
    assert asked[-3] == "bookworm"
    assert "URIs: http://mirror.example/debian\nSuites: bookworm\n" in (
        (debian / "sources").read_text()
    )
    assert (debian / "epoch").read_text() == "315532800\n"


def test_nothing_of_the_mirrors_address_stays_in_a_base_that_we_make(debian: Path) -> None:
    bases.resolve("debian12", ["bootstrap:bookworm"], AMD64, Bench(debian).workshop())
    (hook,) = [x for x in (debian / "asked").read_text().splitlines() if "customize-hook" in x]
    assert 'rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*' in hook


def test_a_bootstrap_that_fails_ends_with_its_last_words(debian: Path) -> None:
    (debian / "mmdebstrap").write_text("#!/bin/sh\necho 'E: no mirror answers' >&2\nexit 25\n")
    with pytest.raises(RemoteError, match="mmdebstrap could not make sid:\n  E: no mirror answers"):
        bases.bootstrap("sid", AMD64, buildx=Bench(debian).buildx, into="x", machine=debian)


def test_a_base_that_cannot_be_pushed_is_told(debian: Path) -> None:
    buildx = FakeBuildx(answer=lambda _: failure("denied: no write access"))
    with pytest.raises(RemoteError, match=r"the base r\.example/x could not be pushed:\n  denied"):
        bases.bootstrap("sid", AMD64, buildx=buildx, into="r.example/x", machine=debian)


def test_a_machine_that_is_no_debian_cannot_make_one() -> None:
    with pytest.raises(ToolError, match="bootstrap:sid needs a machine whose apt takes Debian"):
        bases.bootstrap("sid", AMD64, buildx=Bench(NO_DEBIAN).buildx, into="x", machine=NO_DEBIAN)
