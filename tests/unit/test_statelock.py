"""Two runs in one state folder: who holds it, who waits, and that a killed one holds nothing."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpulayers import statelock
from gpulayers.errors import ToolError

HOLD = """\
import sys, time
from pathlib import Path
from gpulayers import statelock
with statelock.held(Path(sys.argv[1]), "lock", wait=True, say=print):
    print("held", flush=True)
    time.sleep(60)
"""


def nothing(_: str) -> None:
    pytest.fail("nobody was to be waited for")


def test_who_holds_it_stands_in_the_file_and_leaves_it_empty(tmp_path: Path) -> None:
    state = tmp_path / ".gpulayers"
    with statelock.held(state, "build", wait=False, say=nothing):
        held = json.loads((state / "lock").read_text())
        assert (held["command"], set(held)) == ("build", {"pid", "since", "command"})
    assert (state / "lock").read_text() == ""
    with statelock.held(state, "build", wait=False, say=nothing):
        pass


def test_who_does_not_wait_is_told_who_is_there_and_since_when(tmp_path: Path) -> None:
    with statelock.held(tmp_path, "build", wait=True, say=nothing):
        held = json.loads((tmp_path / "lock").read_text())
        with (
            pytest.raises(ToolError) as caught,
            statelock.held(tmp_path, "promote", wait=False, say=nothing),
        ):
            pytest.fail("two at once")
    said = str(caught.value)
    assert f"another `gpulayers build` (process {held['pid']}, since {held['since']})" in said
    assert str(tmp_path) in said
    assert "--no-wait" in caught.value.hint


def test_who_waits_hears_of_it_once_and_goes_on_when_it_is_free(tmp_path: Path) -> None:
    said: list[str] = []
    got = threading.Event()

    def second() -> None:
        with statelock.held(tmp_path, "lock", wait=True, say=said.append):
            got.set()

    waiting = threading.Thread(target=second)
    with statelock.held(tmp_path, "build", wait=True, say=nothing):
        waiting.start()
        time.sleep(0.3)
        assert not got.is_set()
    waiting.join(5)
    assert got.is_set()
    (line,) = said
    assert line.startswith("another `gpulayers build`")
    assert line.endswith("waiting for it to end")


@pytest.mark.usefixtures("own_processes")
def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    env = {"PYTHONPATH": str(Path(statelock.__file__).parents[1])}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with (
            pytest.raises(ToolError, match=f"process {child.pid}"),
            statelock.held(tmp_path, "build", wait=False, say=nothing),
        ):
            pytest.fail("two at once")
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    with statelock.held(tmp_path, "build", wait=False, say=nothing):
        pass


@pytest.mark.usefixtures("own_processes")
def test_a_process_is_gone_when_it_ended_and_never_when_it_is_not_known() -> None:
    assert not statelock.is_gone(statelock.owner())
    with subprocess.Popen(["sleep", "60"]) as child:
        name = statelock.owner(child.pid)
        assert not statelock.is_gone(name)
        child.kill()
    assert statelock.is_gone(name)
    host, pid, start = statelock.owner().split("/")
    assert statelock.is_gone(f"{host}/{pid}/{int(start) + 1}"), "another one of that number"
    for text in ("", host, f"{host}/", f"{host}/x/1", f"{host}/{pid}/", f"other/{pid}/1"):
        assert not statelock.is_gone(text)
