"""Programs on our own streams: real small ones, as starting them is what is tested."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from gpulayers.engine import attached
from gpulayers.errors import ToolError

pytestmark = pytest.mark.usefixtures("own_processes")


def sh(script: str, *, env: dict[str, str] | None = None, handed: str = "") -> int:
    return attached.attach(["sh", "-c", script], has_terminal=False, env=env, handed=handed)


def test_what_it_says_goes_where_ours_goes(capfd: pytest.CaptureFixture[str]) -> None:
    assert sh("echo out; echo err >&2; exit 7") == 7
    assert capfd.readouterr() == ("out\n", "err\n")


def test_a_signal_that_ended_it_is_128_and_its_number() -> None:
    assert sh("kill -KILL $$") == 137


def test_a_text_is_handed_over_in_no_argument_and_no_variable(
    capfd: pytest.CaptureFixture[str],
) -> None:
    script = f"cat {attached.HANDED}; tr '\\0' '\\n' </proc/$$/cmdline; env"
    assert sh(script, handed="word=hush\n") == 0
    out = capfd.readouterr().out
    assert out.startswith("word=hush\n")
    assert out.count("hush") == 1


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_we_get_is_passed_on(signum: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def kill() -> None:
        until = time.monotonic() + 10
        while not ready.exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signum)

    before = signal.getsignal(signum)
    threading.Thread(target=kill, daemon=True).start()
    code = (
        "import pathlib, signal, sys, time\n"
        f"signal.signal({int(signum)}, lambda *_: sys.exit(9))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(20)\n"
    )
    assert attached.attach([sys.executable, "-c", code], has_terminal=False) == 9
    assert signal.getsignal(signum) is before


def test_a_program_at_a_terminal_stays_in_its_group(capfd: pytest.CaptureFixture[str]) -> None:
    code = [sys.executable, "-c", "import os; print(os.getpgrp())"]
    attached.attach(code, has_terminal=True)
    attached.attach(code, has_terminal=False)
    with_terminal, without = capfd.readouterr().out.split()
    assert with_terminal == str(os.getpgrp())
    assert without != with_terminal


def test_a_program_that_is_not_there_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="cannot start no-such-program"):
        attached.attach(["no-such-program"], has_terminal=False)


def test_what_it_says_of_errors_can_be_listened_to(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[bytes] = []
    script = ["sh", "-c", "echo out; echo err >&2; printf last >&2; exit 7"]
    assert attached.attach(script, has_terminal=False, on_error=heard.append) == 7
    assert (b"".join(heard), capfd.readouterr()) == (b"err\nlast", ("out\n", ""))


def test_a_child_that_holds_the_stream_open_holds_nobody_up() -> None:
    heard: list[bytes] = []
    start = time.monotonic()
    script = ["sh", "-c", "echo err >&2; sleep 6 & exit 3"]
    assert attached.attach(script, has_terminal=False, on_error=heard.append) == 3
    assert heard == [b"err\n"]
    assert time.monotonic() - start < 5
