"""What ``tools/devenv`` keeps apart: state, ports, processes, folders, mounts."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from devenv import (
    engine,
    layout,
    mounts,
    processes,
    project,
    registry,
    state,
    talk,
)


def place(folder: Path) -> layout.Layout:
    """A layout that touches nothing outside a test's own folder."""
    return layout.Layout(checkout=folder, run=folder / "run")


class TestState:
    def test_the_environment_file_is_read_as_it_was_written(self) -> None:
        values = {"DOCKER_HOST": "unix:///run/x.sock", "PATH_PREFIX": "/a b:/c=d", "EMPTY": ""}
        assert state.parse_env(state.format_env(values)) == values

    def test_comments_and_other_lines_are_no_pairs(self) -> None:
        assert state.parse_env("# A=1\nnothing\nB=2\n") == {"B": "2"}

    def test_a_line_break_in_a_value_is_refused(self) -> None:
        with pytest.raises(talk.DevenvError, match="PATH_PREFIX has a line break"):
            state.format_env({"PATH_PREFIX": "a\nb"})

    def test_a_free_port_is_kept(self) -> None:
        assert state.choose_port("5001", free=lambda _port: True, new=lambda: 9) == 5001

    @pytest.mark.parametrize("kept", ["", "x", "0", "70000", "-1", "²", "5001"])
    def test_anything_but_a_free_port_is_replaced(self, kept: str) -> None:
        assert state.choose_port(kept, free=lambda port: port != 5001, new=lambda: 9) == 9

    @pytest.mark.parametrize("text", ["", "{", "[]", "7"])
    def test_an_unreadable_state_is_an_empty_one(self, tmp_path: Path, text: str) -> None:
        here = place(tmp_path)
        here.engine.mkdir()
        (here.engine / "state.json").write_text(text)
        assert state.read_state(here) == {}

    def test_facts_are_added_to_what_is_remembered(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        state.remember(here, suite="forky")
        state.remember(here, registry_port="5001")
        assert state.read_state(here) == {"suite": "forky", "registry_port": "5001"}
        assert [entry.name for entry in here.engine.iterdir()] == ["state.json"]

    def test_the_lock_can_be_taken_again_after_its_file_was_removed(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        with state.lock(here):
            (here.engine / "lock").unlink()
        with state.lock(here):
            assert (here.engine / "lock").exists()


class FakeProc:
    """A folder that looks like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self, pid: int, *argv: str, exe: str, parent: int = 1, ticks: int = 100, mark: str = "S"
    ) -> None:
        entry = self.folder / str(pid)
        entry.mkdir()
        rest = " ".join(["0"] * 17)
        (entry / "stat").write_text(f"{pid} (a) b) {mark} {parent} {rest} {ticks} 0\n")
        (entry / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (entry / "exe").symlink_to(exe)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    folder = tmp_path / "proc"
    folder.mkdir()
    (folder / "self").mkdir()
    return FakeProc(folder)


class TestProcesses:
    config = Path("/c/.engine/daemon.json")

    def test_our_server_is_found_by_program_and_configuration(self, proc: FakeProc) -> None:
        proc.add(7, "dockerd", "--config-file", str(self.config), exe="/x/dockerd", ticks=55)
        found = processes.find("dockerd", self.config, proc.folder)
        assert found is not None
        assert (found.pid, found.start_ticks) == (7, 55)

    @pytest.mark.parametrize(
        ("exe", "word", "mark"),
        [
            ("/x/vim", "/c/.engine/daemon.json", "S"),
            ("/x/dockerd", "/other/.engine/daemon.json", "S"),
            ("/x/dockerd", "/c/.engine/daemon.json.bak", "S"),
            ("/x/dockerd", "/c/.engine/daemon.json", "Z"),
        ],
        ids=["an-editor", "another-clone", "another-file", "a-zombie"],
    )
    def test_others_are_not_taken_for_it(
        self, proc: FakeProc, exe: str, word: str, mark: str
    ) -> None:
        proc.add(7, "dockerd", "--config-file", word, exe=exe, mark=mark)
        assert processes.find("dockerd", self.config, proc.folder) is None

    def test_a_program_whose_file_is_gone_is_still_ours(self, proc: FakeProc) -> None:
        proc.add(7, "dockerd", str(self.config), exe="/x/dockerd (deleted)")
        assert processes.find("dockerd", self.config, proc.folder) is not None

    def test_a_number_that_another_process_got_is_stale(
        self, proc: FakeProc, tmp_path: Path
    ) -> None:
        proc.add(7, "dockerd", str(self.config), exe="/x/dockerd", ticks=55)
        found = processes.find("dockerd", self.config, proc.folder)
        assert found is not None
        assert processes.is_alive(found, proc.folder)
        later = FakeProc(tmp_path / "later")
        later.folder.mkdir()
        later.add(7, "dockerd", str(self.config), exe="/x/dockerd", ticks=9000)
        assert not processes.is_alive(found, later.folder)

    def test_what_a_killed_engine_leaves_is_found_with_its_children(self, proc: FakeProc) -> None:
        socket = "/run/ours/exec/containerd/containerd.sock"
        proc.add(10, "shim", "-address", socket, exe="/x/containerd-shim-runc-v2")
        proc.add(11, "/app", exe="/app", parent=10)
        proc.add(12, "/app-child", exe="/app", parent=11)
        proc.add(13, "shim", "-address", "/run/ours2/c.sock", exe="/x/containerd-shim-runc-v2")
        proc.add(14, "vim", "/run/ours/exec/x", exe="/usr/bin/vim")
        left = processes.left_over(engine.CHILDREN, Path("/run/ours"), proc.folder)
        assert [process.pid for process in left] == [10, 11, 12]

    def test_a_machine_without_proc_has_no_processes_of_ours(self, tmp_path: Path) -> None:
        assert processes.every(tmp_path / "none") == []

    def test_a_server_gets_no_token_of_ours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REGISTRY_TOKEN", "secret")
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
        found = processes.server_environment("/bin")
        assert "REGISTRY_TOKEN" not in found
        assert found["HTTPS_PROXY"] == "http://proxy.example"
        assert found["PATH"] == "/bin"


class TestLayout:
    def test_two_checkouts_never_share_a_folder_for_sockets(self) -> None:
        first, second = (
            layout.run_folder(Path(checkout), Path("/run")) for checkout in ("/a", "/b")
        )
        assert first != second
        assert first == layout.run_folder(Path("/a"), Path("/run"))

    def test_a_deep_checkout_does_not_lengthen_the_socket(self) -> None:
        run = layout.run_folder(Path("/" + "deep/" * 100), Path("/run"))
        assert len(str(run)) == len("/run/gpulayers-") + 8

    def test_a_socket_path_that_the_kernel_would_refuse_is_refused_first(
        self, tmp_path: Path
    ) -> None:
        here = layout.Layout(checkout=tmp_path, run=tmp_path / ("x" * 90))
        with pytest.raises(talk.DevenvError, match="too long for a socket"):
            layout.make_run_folder(here)

    def test_a_link_in_place_of_the_folder_is_refused(self) -> None:
        target = Path("/")
        here = layout.Layout(checkout=target, run=Path("/proc/self/cwd"))
        with pytest.raises(talk.DevenvError, match="belongs to somebody else"):
            layout.make_run_folder(here)


class TestConfigurations:
    def test_two_engines_have_nothing_in_common(self) -> None:
        texts = [
            json.loads(
                engine.format_daemon_config(
                    layout.Layout(
                        checkout=Path(name), run=layout.run_folder(Path(name), Path("/run"))
                    )
                )
            )
            for name in ("/a", "/b")
        ]
        own = ("data-root", "exec-root", "pidfile", "hosts", "cdi-spec-dirs")
        assert all(texts[0][key] != texts[1][key] for key in own)
        assert texts[0]["bridge"] == "none"
        assert texts[0]["iptables"] is False

    def test_a_full_disk_is_refused_before_anything_is_fetched(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage(tmp_path)._replace(free=287_000_000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(talk.DevenvError) as caught:
            engine.check_disk(place(tmp_path))
        assert "wanted 5.0 GB free, found 287 MB in" in str(caught.value)
        assert "make clean" in caught.value.hint

    def test_the_registry_listens_on_the_loopback_interface_only(self, tmp_path: Path) -> None:
        text = registry.format_config(place(tmp_path), 5001)
        assert "addr: 127.0.0.1:5001" in text
        assert f'rootdirectory: "{tmp_path}/.engine/registry"' in text
        assert "delete:\n    enabled: true" in text

    def test_a_server_has_the_system_folders_on_its_path(self) -> None:
        found = engine.server_path({"PATH": "/opt/bin:/usr/bin"})
        assert found.split(":")[:2] == ["/opt/bin", "/usr/bin"]
        assert {"/usr/sbin", "/sbin"} <= set(found.split(":"))

    def test_an_unknown_engine_word_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ENGINE", "podman")
        with pytest.raises(talk.DevenvError, match="ENGINE=podman is not known"):
            engine.is_private(place(tmp_path))

    def test_our_own_engine_is_not_taken_for_the_machines(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here = place(tmp_path)
        for name, value in engine.private_environment(here).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", f"{here.bin}:/usr/bin")
        found = engine.machine_environment(here)
        assert "DOCKER_HOST" not in found
        assert "DOCKER_CONFIG" not in found
        assert found["PATH"] == "/usr/bin"

    def test_an_installation_depends_on_the_project_and_its_python(self) -> None:
        first = project.fingerprint(b"a", "3.11")
        assert first != project.fingerprint(b"b", "3.11")
        assert first != project.fingerprint(b"a", "3.12")


class TestMounts:
    def test_escaped_mount_points_are_read(self) -> None:
        text = "22 1 0:20 / /a\\040b rw - tmpfs tmpfs rw\n23 22 0:21 / /a\\040b/c rw - x x rw\n"
        assert mounts.parse_mountinfo(text) == ["/a b", "/a b/c"]

    def test_only_ours_come_and_the_deepest_first(self) -> None:
        points = ["/", "/c/.engine", "/c/.engine/data/x", "/c/.engine-other", "/run/ours/exec"]
        found = mounts.below(points, [Path("/c/.engine"), Path("/run/ours")])
        assert found == ["/run/ours/exec", "/c/.engine/data/x", "/c/.engine"]
