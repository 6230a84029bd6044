"""The machine's apt sources, in both of apt's file formats."""

from pathlib import Path

import pytest

from gpulayers import apt
from gpulayers.apt import AptSource

DEB822 = """\
# what the installer wrote
Types: deb deb-src
URIs: http://one.example/debian
  http://two.example/debian
Suites: bookworm bookworm-updates
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/own.gpg

Types: deb
URIs: http://one.example/debian-security
Suites: bookworm-security
Components: main
Enabled: yes

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: No
"""
ONE_LINE = """\
# deb http://comment.example/debian bookworm main
deb [arch=amd64 signed-by=/etc/k.gpg] http://one.example/debian bookworm main contrib # ours
deb http://two.example/debian   bookworm-security main
deb-src http://source.example/debian bookworm main
deb http://flat.example/repo ./
"""


def source(
    uri: str, *suites: str, components: tuple[str, ...] = ("main",), signed_by: str = ""
) -> AptSource:
    return AptSource(uri=uri, suites=suites, components=components, signed_by=signed_by)


def machine(root: Path, *, codename: str = "bookworm", name: str = "debian") -> Path:
    (root / "etc" / "apt" / "sources.list.d").mkdir(parents=True)
    (root / "etc" / "os-release").write_text(f'ID={name}\nVERSION_CODENAME="{codename}"\nX\n')
    return root


def test_deb822_files_give_their_binary_archives_that_are_not_switched_off() -> None:
    both = ("main", "non-free-firmware")
    key = "/usr/share/keyrings/own.gpg"
    suites = ("bookworm", "bookworm-updates")
    assert apt.parse(DEB822, one_line=False) == (
        source("http://one.example/debian", *suites, components=both, signed_by=key),
        source("http://two.example/debian", *suites, components=both, signed_by=key),
        source("http://one.example/debian-security", "bookworm-security"),
    )


def test_one_line_files_give_their_binary_archives_without_comments() -> None:
    assert apt.parse(ONE_LINE, one_line=True) == (
        source(
            "http://one.example/debian",
            "bookworm",
            components=("main", "contrib"),
            signed_by="/etc/k.gpg",
        ),
        source("http://two.example/debian", "bookworm-security"),
    )


def test_a_key_that_stands_in_the_file_itself_is_kept_whole() -> None:
    key = "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ==\n"
    (found,) = apt.parse(
        f"Types: deb\nURIs: http://a.example\nSuites: s\nComponents: main\n{key}", one_line=False
    )
    (again,) = apt.parse(found.format(), one_line=False)
    assert again == found
    assert "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ==" in found.format()


def test_a_formatted_source_reads_back_as_itself_with_debians_keyring() -> None:
    one = source("http://a.example/debian", "trixie", "trixie-updates", signed_by=apt.KEYRING)
    assert apt.parse(one.format(), one_line=False) == (one,)
    assert f"Signed-By: {apt.KEYRING}\n" in source("http://a.example", "s").format()


@pytest.mark.parametrize("text", ["", "\n\n\n", "no field here", " lost line\n", "Types: deb\n"])
def test_a_file_without_an_archive_gives_none(text: str) -> None:
    assert apt.parse(text, one_line=False) == ()
    assert apt.parse(text, one_line=True) == ()


def test_another_suite_takes_the_place_of_the_machines_own() -> None:
    found = apt.for_suite(apt.parse(DEB822, one_line=False)[1:], own="bookworm", wanted="trixie")
    assert [(one.uri, one.suites, one.components) for one in found] == [
        ("http://two.example/debian", ("trixie", "trixie-updates"), ("main",)),
        ("http://one.example/debian-security", ("trixie-security",), ("main",)),
    ]


@pytest.mark.parametrize(
    "other",
    [
        source("http://vendor.example/cuda", "stable"),
        source("http://vendor.example/x", "bookworm-cran"),
        source("file:/srv/mirror", "bookworm"),
        source("cdrom:[Debian]/", "bookworm"),
        source("http://one.example/debian", "bookworm", components=("contrib",)),
    ],
    ids=lambda one: one.uri,
)
def test_what_a_build_cannot_use_is_left_out(other: AptSource) -> None:
    assert apt.for_suite([other], own="bookworm", wanted="bookworm") == ()


def test_the_same_archive_twice_is_one() -> None:
    twice = [source("http://one.example/debian", "bookworm")] * 2
    assert len(apt.for_suite(twice, own="bookworm", wanted="trixie")) == 1


def test_a_machine_is_read_file_by_file(tmp_path: Path) -> None:
    folder = machine(tmp_path) / "etc" / "apt"
    (folder / "sources.list").write_text("deb http://list.example/debian bookworm main\n")
    (folder / "sources.list.d" / "b.list").write_text("deb http://b.example/ bookworm main\n")
    (folder / "sources.list.d" / "a.sources").write_text(DEB822)
    (folder / "sources.list.d" / "c.list.save").write_text("deb http://c.example/ bookworm main\n")
    found = [one.uri for one in apt.read_machine(tmp_path)]
    assert found[0] == "http://list.example/debian"
    assert found[-1] == "http://b.example/"
    assert len(found) == 5


def test_a_machine_without_apt_has_no_sources(tmp_path: Path) -> None:
    assert apt.read_machine(tmp_path) == ()
    assert apt.read_codename(tmp_path) == ""
    assert apt.sources_text("bookworm", tmp_path) == ""


def test_only_a_debian_has_mirrors_for_debian_suites(tmp_path: Path) -> None:
    folder = machine(tmp_path, name="ubuntu", codename="jammy") / "etc" / "apt"
    (folder / "sources.list").write_text("deb http://list.example/ubuntu jammy main\n")
    assert apt.sources_text("bookworm", tmp_path) == ""


def test_the_text_for_a_suite_has_a_paragraph_an_archive(tmp_path: Path) -> None:
    folder = machine(tmp_path) / "etc" / "apt"
    (folder / "sources.list.d" / "debian.sources").write_text(DEB822)
    text = apt.sources_text("trixie", tmp_path)
    assert text.count("Types: deb\n") == 3
    assert "bookworm" not in text
    assert text.count("\n\n") == 2
    assert text.endswith("\n")
