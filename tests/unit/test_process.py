"""Starting programs: real small ones, as starting them is what is tested."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulayers.engine import process
from gpulayers.errors import ToolError

pytestmark = pytest.mark.usefixtures("own_processes")

BIG = 3_000_000  # many times what a pipe holds


def sh(script: str, **named: str) -> process.Finished:
    return process.run(["sh", "-c", script], env=named, timeout_s=20)


def is_running(pid: int) -> bool:
    """A killed process whose parent is gone may stay as a zombie, which is not running."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid: int) -> bool:
    until = time.monotonic() + 3
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(pid)


def test_both_streams_and_the_status_come_back() -> None:
    done = sh("echo out; echo err >&2; exit 3")
    assert (done.code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert not done.ok
    assert not done.timed_out
    assert done.seconds > 0


def test_our_environment_goes_along_with_what_is_added() -> None:
    done = sh('echo "$PATH|$ADDED"', ADDED="yes")
    assert done.stdout == f"{os.environ['PATH']}|yes\n"


def test_it_starts_in_the_folder_that_it_is_told(tmp_path: Path) -> None:
    assert process.run(["pwd", "-P"], cwd=tmp_path).stdout.strip() == str(tmp_path.resolve())


def test_without_stdin_nothing_waits_for_a_terminal() -> None:
    assert process.run(["cat"], timeout_s=10).ok


def test_stdin_is_fed_and_closed() -> None:
    done = process.run(["cat"], stdin="one\ntwo ä", timeout_s=10)
    assert done.stdout == "one\ntwo ä"


def test_output_and_input_bigger_than_pipes_do_not_deadlock() -> None:
    script = "import sys; text = sys.stdin.read(); sys.stderr.write(text); sys.stdout.write(text)"
    text = ("x" * 99 + "\n") * (BIG // 100)
    done = process.run([sys.executable, "-c", script], stdin=text, timeout_s=20)
    assert done.ok
    assert len(done.stdout) == BIG
    assert len(done.stderr.splitlines()) == process.TAIL_LINES


def test_a_program_that_does_not_read_its_stdin_is_no_error() -> None:
    assert process.run(["true"], stdin="x" * BIG, timeout_s=10).ok


def test_a_program_that_never_reads_its_stdin_still_runs_out_of_time() -> None:
    done = process.run(["sleep", "30"], stdin="x" * BIG, timeout_s=0.1)
    assert done.timed_out
    assert done.seconds < 5


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert sh(r"printf 'a\377b'").stdout == "a\ufffdb"


def test_a_time_out_ends_the_whole_group(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"sleep 60 & echo $! >{file}; wait"
    done = process.run(["sh", "-c", script], timeout_s=0.3)
    assert done.timed_out
    assert not done.ok
    assert done.code < 0
    assert wait_until_gone(int(file.read_text()))


def test_a_time_out_says_no_matter_what_the_status_is() -> None:
    script = "trap 'exit 0' TERM; sleep 60 & wait"
    done = process.run(["sh", "-c", script], timeout_s=0.2)
    assert (done.code, done.timed_out, done.ok) == (0, True, False)


def test_who_does_not_listen_to_the_first_signal_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.1)
    done = process.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], timeout_s=0.2)
    assert done.timed_out
    assert done.code == -9


def test_children_that_a_program_leaves_behind_end_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    done = sh(f"sleep 60 & echo $! >{file}; echo said")
    assert done.ok
    assert done.stdout == "said\n"
    assert done.seconds < 4  # its open pipes did not hold us
    assert wait_until_gone(int(file.read_text()))


def test_an_interrupt_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pid"

    def interrupt(_process: object, _timeout_s: object) -> bool:
        until = time.monotonic() + 5
        while not file.is_file() and time.monotonic() < until:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        process.run(["sh", "-c", f"echo $$ >{file}.new; mv {file}.new {file}; exec sleep 60"])
    assert wait_until_gone(int(file.read_text()))


def test_end_all_ends_what_other_threads_run() -> None:
    seen: list[str] = []

    def end(line: str) -> None:
        seen.append(line)
        process.end_all()

    done = process.run(["sh", "-c", "echo ready >&2; exec sleep 60"], on_stderr=end, timeout_s=20)
    assert seen == ["ready"]
    assert (done.code, done.timed_out) == (-15, False)
    process.end_all()  # nothing runs any more, and that is fine


def test_each_line_of_stderr_comes_as_it_is_written() -> None:
    seen: list[str] = []
    done = process.run(
        ["sh", "-c", "printf 'a\\nTOKEN=x\\nlast' >&2"], on_stderr=seen.append, timeout_s=10
    )
    assert seen == ["a", "TOKEN=x", "last"]
    assert done.stderr == "a\nTOKEN=***\nlast\n"


def test_what_a_listener_raises_comes_out_and_does_not_stop_the_program(tmp_path: Path) -> None:
    def fail(line: str) -> None:
        raise LookupError(line)

    script = (
        f"i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; touch {tmp_path}/end"
    )
    with pytest.raises(LookupError, match="line 0"):
        process.run(["sh", "-c", script], on_stderr=fail, timeout_s=20)
    assert (tmp_path / "end").is_file()


def test_a_missing_program_is_told_with_what_to_do() -> None:
    with pytest.raises(ToolError, match="cannot start no-such-tool: No such file") as caught:
        process.run(["no-such-tool", "--version"])
    assert caught.value.hint == "install no-such-tool or put its folder on PATH"


@pytest.mark.parametrize(
    ("mode", "reason"), [(0o644, "Permission denied"), (0o755, "Exec format error")]
)
def test_a_file_that_is_no_program_is_told(tmp_path: Path, mode: int, reason: str) -> None:
    file = tmp_path / "tool"
    file.write_bytes(b"\x7fELF\0\0\0\0" * 16)
    file.chmod(mode)
    with pytest.raises(ToolError, match=reason):
        process.run([str(file)])


def test_a_missing_folder_to_start_in_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        process.run(["true"], cwd=tmp_path / "gone")
    assert "gone, which is no folder" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HF_TOKEN=abc rest", "HF_TOKEN=*** rest"),
        ("--build-arg=HF_TOKEN=abc rest", "--build-arg=HF_TOKEN=*** rest"),
        ("--build-arg HF_TOKEN=a,b;c&d", "--build-arg HF_TOKEN=***"),
        ("api-key=a==", "api-key=***"),
        ("PASSWD='a b' next", "PASSWD=*** next"),
        ('db_password="a b" next', "db_password=*** next"),
        ('{"token": "abc", "n": 1}', '{"token": "***", "n": 1}'),
        ('{"Token":"a\\"b"}', '{"Token":"***"}'),
        ('["A=1","HF_TOKEN=abc"]', '["A=1","HF_TOKEN=***"]'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization: Basic dTpw\nnext", "authorization: Basic ***\nnext"),
        ("https://user:pa@ss@host/x", "https://***@host/x"),
        ("https://glpat-abc@host/x", "https://***@host/x"),
        ("TOKEN= next", "TOKEN=*** next"),
        ("TOKEN=a\nPATH=/b TOKEN=c", "TOKEN=***\nPATH=/b TOKEN=***"),
    ],
)
def test_secrets_are_blanked(text: str, shown: str) -> None:
    assert process.redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "PATH=/usr/bin CUDA=12.8",
        "the token was refused",
        "https://host/a@b sha256:0@x",
        "docker.io/library/debian@sha256:00",
        '{"tokens": [1, 2], "name": "x"}',
        "a==b",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert process.redact(text) == text


def test_a_word_of_a_command_line_is_blanked_to_its_end() -> None:
    assert process.redact_word("--build-arg=HF_TOKEN=a b'c") == "--build-arg=HF_TOKEN=***"
    assert process.redact_word("--set=x.args.P=https://u:p@h") == "--set=x.args.P=https://***@h"


def test_redaction_is_fast_on_a_long_line() -> None:
    start = time.thread_time()
    process.redact("a" * 300_000 + "=" + "b" * 300_000)
    process.redact("token://" * 30_000)
    process.redact("x" * 300_000 + "://" + "y" * 300_000)
    assert time.thread_time() - start < 2


def test_the_tail_prefers_stderr_and_drops_empty_lines() -> None:
    assert sh("echo out; printf '1\\n\\n2  \\n3\\n' >&2").tail(2) == ("2", "3")
    assert sh("echo out; echo >&2").tail() == ("out",)


@pytest.fixture
def resumed() -> Iterator[None]:
    yield
    process.resume()


@pytest.mark.usefixtures("resumed")
def test_a_stop_ends_what_runs_by_force_and_starts_nothing_more() -> None:
    stubborn = "trap '' TERM; echo up >&2; while true; do sleep 0.05; done"
    heard, found = threading.Event(), []

    def work() -> None:
        done = process.run(["sh", "-c", stubborn], on_stderr=lambda _: heard.set())
        found.append(done)

    worker = threading.Thread(target=work)
    worker.start()
    assert heard.wait(10)
    begin = time.monotonic()
    process.stop()
    assert time.monotonic() - begin < 1, "a handler of signals does not wait"
    worker.join(10)
    assert [done.code for done in found] == [-signal.SIGKILL]
    with pytest.raises(process.StoppedError, match="sh was not started"):
        sh("true")


@pytest.mark.usefixtures("resumed")
def test_what_tidies_up_runs_after_a_stop_and_is_not_stopped() -> None:
    with process.tidying():
        process.stop()
        assert sh("echo done").stdout == "done\n"
    with pytest.raises(process.StoppedError):
        sh("true")
    process.resume()
    assert sh("true").ok
