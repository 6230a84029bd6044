"""What ``tools/devenv`` takes from where: apt sources, packages, programs, versions."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from devenv import (
    layout,
    packages,
    programs,
    sources,
    talk,
    version,
)

DEB822 = """\
# the main archive
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/main.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Trusted: yes

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
"""
KEY_BLOCK = """\
Types: deb
URIs: http://mirror.example/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
"""


def place(folder: Path) -> layout.Layout:
    """A layout that touches nothing outside a test's own folder."""
    return layout.Layout(checkout=folder, run=folder / "run")


class TestSources:
    def test_deb822_keeps_enabled_binary_stanzas_in_order(self) -> None:
        found = sources.parse_deb822(DEB822)
        assert [source.uri for source in found] == [
            "http://mirror.example/debian",
            "http://mirror.example/security",
        ]

    def test_deb822_keeps_suites_components_and_key(self) -> None:
        first = sources.parse_deb822(DEB822)[0]
        assert first.suites == ("bookworm", "bookworm-updates")
        assert first.components == ("main", "contrib")
        assert first.signed_by == "/usr/share/keyrings/main.gpg"

    def test_a_trusted_mark_is_never_carried_over(self) -> None:
        text = "".join(s.for_suite("forky") for s in sources.parse_deb822(DEB822))
        line = "deb [trusted=yes] http://mirror.example/debian bookworm main"
        text += sources.parse_one_line(line)[0].for_suite("forky")
        assert "rusted" not in text

    def test_a_key_inside_the_file_survives_the_round_trip(self) -> None:
        source = sources.parse_deb822(KEY_BLOCK)[0]
        assert " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF" in source.for_suite("forky")
        assert sources.parse_deb822(source.for_suite("trixie")) == [source]

    @pytest.mark.parametrize(
        ("line", "signed_by", "components"),
        [
            ("deb http://m.example/debian bookworm main", "", ("main",)),
            ("deb  http://m.example/debian  bookworm main contrib # x", "", ("main", "contrib")),
            (
                "deb [arch=amd64 signed-by=/k.gpg] http://m.example/debian bookworm main",
                "/k.gpg",
                ("main",),
            ),
        ],
        ids=["plain", "comment", "options"],
    )
    def test_one_line_is_read(self, line: str, signed_by: str, components: tuple[str, ...]) -> None:
        (source,) = sources.parse_one_line(line)
        assert source.uri == "http://m.example/debian"
        assert source.suites == ("bookworm",)
        assert source.components == components
        assert source.signed_by == signed_by

    @pytest.mark.parametrize(
        "line", ["", "# deb x y main", "deb-src x y main", "deb x", "debx y z"]
    )
    def test_other_lines_are_no_sources(self, line: str) -> None:
        assert sources.parse_one_line(line) == []

    def test_the_source_of_the_own_suite_is_picked(self) -> None:
        found = sources.parse_deb822(DEB822)
        assert sources.pick(found[::-1], "bookworm").uri == "http://mirror.example/debian"

    def test_a_missing_suite_is_named(self) -> None:
        with pytest.raises(talk.DevenvError, match="suite 'sid' with the component main"):
            sources.pick(sources.parse_deb822(DEB822), "sid")

    def test_both_kinds_of_files_are_read_and_disabled_ones_are_not(self, tmp_path: Path) -> None:
        parts = tmp_path / "sources.list.d"
        parts.mkdir()
        (tmp_path / "sources.list").write_text("deb http://a.example/ bookworm main\n")
        (parts / "b.list").write_text("deb http://b.example/ bookworm main\n")
        (parts / "c.sources").write_text(DEB822)
        (parts / "d.list.disabled").write_text("deb http://d.example/ bookworm main\n")
        uris = [source.uri for source in sources.read_all(tmp_path)]
        assert uris[:3] == [
            "http://a.example/",
            "http://b.example/",
            "http://mirror.example/debian",
        ]
        assert len(uris) == 4

    def test_os_release_loses_its_quotes(self) -> None:
        text = "ID=debian\nVERSION_CODENAME='bookworm'\nNAME=\"Debian GNU/Linux\"\n\n"
        assert sources.parse_os_release(text) == {
            "ID": "debian",
            "VERSION_CODENAME": "bookworm",
            "NAME": "Debian GNU/Linux",
        }


class TestPackages:
    def test_a_simulated_installation_gives_names_without_architecture(self) -> None:
        text = (
            "Remv containerd.io [1.7]\nInst libmnl0 (1.0.4-3 Debian:12 [amd64])\n"
            "Inst perl:amd64 [5.36-1] (5.36-2 Debian:12 [amd64])\nConf libmnl0 (1.0.4-3)\n"
        )
        assert packages.parse_simulation(text) == ["libmnl0", "perl"]

    def test_a_half_unpacked_package_does_not_count(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        (here.packages / "runc" / "usr").mkdir(parents=True)
        assert not packages.is_unpacked(here, "runc")
        (here.packages / "runc" / packages.LABEL).write_text("1.1 (bookworm)\n")
        assert packages.is_unpacked(here, "runc")
        assert packages.version(here, "runc") == "1.1 (bookworm)"

    def test_every_package_taken_has_its_programs_named(self) -> None:
        taken = {
            *programs.ENGINE_PACKAGES,
            *programs.ENGINE_HELPERS,
            *programs.REGISTRY_PACKAGES,
            *programs.BOOTSTRAP_PACKAGES,
        }
        assert taken == set(programs.FILES)


class TestPrograms:
    def test_a_wrapper_puts_our_libraries_before_those_of_the_caller(self) -> None:
        text = programs.format_wrapper(Path("/a b/runc"), [Path("/x"), Path("/y z")], [])
        assert "LD_LIBRARY_PATH='/x:/y z'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" in text
        assert text.endswith("exec '/a b/runc' \"$@\"\n")
        assert "PERL5LIB" not in text

    def test_the_init_that_is_mounted_into_containers_is_never_a_script(
        self, tmp_path: Path
    ) -> None:
        here = place(tmp_path)
        library = here.packages / "libx" / "usr" / "lib" / "x86_64-linux-gnu" / "libx.so.1"
        library.parent.mkdir(parents=True)
        library.touch()
        programs.link(here, ["tini", "runc"])
        assert (here.bin / "docker-init").is_symlink()
        assert (here.bin / "runc").read_text().startswith("#!/bin/sh\n")

    def test_linking_twice_and_relinking_leave_one_link(self, tmp_path: Path) -> None:
        path = tmp_path / "bin" / "docker"
        for name in ("old", "new", "new"):
            programs.link_one(path, tmp_path / name)
        assert str(path.readlink()) == "../new"
        assert [entry.name for entry in path.parent.iterdir()] == ["docker"]

    def test_unlinking_takes_every_program_away(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        programs.link(here, programs.FILES)
        programs.unlink(here, programs.FILES)
        assert list(here.bin.iterdir()) == []


class TestVersion:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("28.5.2+dfsg4", (28, 5, 2)),
            ("github.com/docker/buildx 0.29.1+ds1-4 0.29.1", (0, 29, 1)),
            ("github.com/docker/buildx v0.13.0-rc1 abc", (0, 13, 0)),
            ("Version: 0.76.0\nVulnerability DB:", (0, 76, 0)),
            ("dev", ()),
            ("", ()),
        ],
    )
    def test_the_first_dotted_number_counts(self, text: str, expected: version.Version) -> None:
        assert version.parse(text) == expected

    @pytest.mark.parametrize(
        ("docker", "buildx", "word"),
        [
            ((25, 0), (0, 13), ""),
            ((28, 5, 2), (0, 29, 1), ""),
            ((24, 0, 9), (0, 29, 1), "Docker 24.0.9"),
            ((9, 0), (0, 29, 1), "Docker 9.0"),
            ((28, 0), (0, 9, 1), "buildx 0.9.1"),
            ((28, 0), (), "buildx (none)"),
            ((), (0, 13), "Docker (none)"),
        ],
    )
    def test_an_engine_is_judged(
        self, docker: version.Version, buildx: version.Version, word: str
    ) -> None:
        reason = version.lacks(docker, buildx)
        assert word in reason
        assert bool(reason) == bool(word)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0.68.0", True),
            ("0.69.3", True),
            ("0.76.0", True),
            ("0.69.4", False),
            ("0.69.5", False),
            ("0.69.6", False),
            ("0.69.4-1", False),
            ("0.67.2", False),
            ("unknown", False),
        ],
    )
    def test_a_scanner_is_judged(self, text: str, expected: bool) -> None:
        assert version.is_usable_trivy(version.parse(text)) is expected
