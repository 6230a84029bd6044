"""Logs to known errors: excerpts of public threads, ordinary logs, and what comes first."""

import json
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from catalog_samples import image, write_state
from click.testing import CliRunner, Result
from lock_samples import REPOSITORY

from gpulayers import diagnose
from gpulayers.cli import main
from gpulayers.compat.model import RuleName
from gpulayers.diagnose import patterns
from gpulayers.facts.load import load_errors

THREADS = tomllib.loads(Path(__file__).with_name("threads.toml").read_text("utf-8"))["thread"]


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread["url"][19:])
def test_what_people_posted_is_told_apart_causes_first(thread: Mapping[str, Any]) -> None:
    found = diagnose.find(thread["text"].splitlines())
    assert [finding.error.name for finding in found] == thread["errors"]


def test_there_are_enough_threads() -> None:
    assert len({thread["url"] for thread in THREADS}) >= 25


SAID = tomllib.loads(Path(__file__).with_name("torch.toml").read_text("utf-8"))["said"]


@pytest.mark.parametrize("said", SAID, ids=lambda said: said["name"])
def test_what_torch_itself_says_is_known(said: Mapping[str, Any]) -> None:
    found = diagnose.find(said["text"].splitlines())
    assert [finding.error.name for finding in found] == said["errors"]


# `demo-build.log` is a whole build, but for what the machine lacked: that is in `demo-lacks.log`.
ORDINARY = sorted((Path(__file__).parent / "logs").glob("*.log"))


@pytest.mark.parametrize("path", ORDINARY, ids=lambda path: path.stem)
def test_in_an_ordinary_log_nothing_is_found(path: Path) -> None:
    found = diagnose.find(path.read_text(encoding="utf-8").splitlines())
    assert [(f.error.name, f.text) for f in found] == []


def test_there_are_enough_ordinary_logs() -> None:
    assert len(ORDINARY) >= 20


def test_every_row_is_whole_names_what_there_is_and_matches_no_short_words() -> None:
    rules = set(get_args(RuleName))
    names = {error.name for error in load_errors()}
    for error in load_errors():
        assert error.cause, error.name
        assert error.fix, error.name
        assert error.match, error.name
        assert set(error.foretold_by) <= rules, error.name
        assert set(error.after) <= names | {"*"}, error.name
        for text in error.match:
            # Not so short that ordinary words hit it.
            assert len(re.sub(r"\\.|[^A-Za-z]", "", text)) >= 6, (error.name, text)


def names_of(text: str) -> list[tuple[str, int, int]]:
    return [(f.error.name, f.line, f.count) for f in diagnose.find(text.splitlines())]


def test_each_error_is_named_once_with_its_first_line_and_how_often() -> None:
    text = "start\nCUDA out of memory\nmore\nRuntimeError: CUDA out of memory. Tried to allocate\n"
    assert names_of(text) == [("oom", 2, 2)]


def test_of_hits_on_the_same_words_the_longest_counts() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch"
    assert names_of(text) == [("nvml-mismatch", 1, 1)]
    assert names_of("could not find it: libcudnn.so.9: cannot open shared object file") == [
        ("cudnn-missing", 1, 1)
    ]


def test_two_errors_in_a_line_are_both_named() -> None:
    text = "0/2 nodes: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {x: y}"
    assert [name for name, *_ in names_of(text)] == ["device-plugin-insufficient", "taint"]


def test_a_cause_comes_before_what_follows_from_it_wherever_it_stands() -> None:
    text = "ERROR: process did not complete successfully: exit code: 1\n"
    text += "E: Unable to locate package libfoo\n"
    assert [name for name, *_ in names_of(text)] == ["apt-gone", "step-failed"]


def test_colours_progress_bars_and_endless_lines_do_no_harm() -> None:
    text = "\x1b[31mCUDA\x1b[0m out of memory"
    assert names_of(text) == [("oom", 1, 1)]
    assert names_of("10%\r20%\rno CUDA-capable device is detected\r") == [("no-device", 3, 1)]
    assert names_of("x" * 10_000_000) == []


KERNEL = "CUDA error: no kernel image is available for execution on the device"
DRIVER = 'could not select device driver "" with capabilities: [[gpu]]'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"err":' + json.dumps(f"daemon: {DRIVER}") + "}", [("docker-no-runtime", 1, 1)]),
        ('{"log":' + json.dumps(json.dumps({"m": DRIVER})) + "}", [("docker-no-runtime", 1, 1)]),
        (
            r'{"m":"requirement error: unsatisfied condition: cuda\u003e=12.6, please"}',
            [("requirement", 1, 1)],
        ),
        (r'{"log":"no kernel image is available for execution\non the device\n"}', [KERNEL]),
        (r"b'CUDA out of memory\nTried'", [("oom", 1, 1)]),
    ],
    ids=["quotes", "twice", "number", "end-of-line", "repr"],
)
def test_what_json_escapes_is_read_as_it_was_meant(text: str, found: Sequence[object]) -> None:
    assert names_of(text) == [("no-kernel-image", 1, 1) if f == KERNEL else f for f in found]


WRAPPED = {
    "plain": "x\nCUDA error: no kernel image is available for execution\non the device",
    "indented": "x\nCUDA error: no kernel image is available for\n    execution on the device",
    "three": "x\nno kernel image is available\n  for execution on\n  the device\ny",
    "rank": "x\n[rank0]: no kernel image is available\n[rank0]: for execution on the device",
    "times": "x\n2026-09-01T10:00:00.1Z no kernel image is available for\n"
    "2026-09-01T10:00:00.25Z execution on the device",
    "level": "x\n2026-09-01 02:13:44 | ERROR | no kernel image is available for\n"
    "2026-09-01 02:13:44 | ERROR |   execution on the device",
    "glog": "x\nE0901 02:13:44.120 1 main.cpp:12] no kernel image is available for\n"
    "E0901 02:13:44.121 1 main.cpp:12] execution on the device",
    "step": "x\n#9 99.98 no kernel image is available for\n#9 100.1 execution on the device",
    "kubernetes": "x\n2026-09-01T02:13:44.1Z stderr P no kernel image is avail\n"
    "2026-09-01T02:13:44.1Z stdout F other\n"
    "2026-09-01T02:13:44.1Z stderr P able for execution on\n"
    "2026-09-01T02:13:44.2Z stderr F  the device",
    "kubernetes, cut off": "x\n2026-09-01T02:13:44.1Z stderr P no kernel image is avail\n"
    "2026-09-01T02:13:44.1Z stderr P able for execution on the device",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_message_over_several_lines_is_found_once_with_its_first(name: str) -> None:
    assert names_of(WRAPPED[name]) == [("no-kernel-image", 2, 1)]


def test_the_rest_of_a_broken_message_is_no_error_of_its_own() -> None:
    text = "NCCL WARN Call to posix_fallocate failed :\nNo space left on device\n"
    assert names_of(text) == [("shm", 1, 1)]
    assert names_of(text + "cp: No space left on device") == [("shm", 1, 1), ("disk-full", 3, 1)]


def test_two_lines_that_only_stand_together_are_no_message() -> None:
    assert names_of("loaded the kernel image\n\nis available for execution on the device") == []


def test_nccl_without_shared_memory_is_no_full_disk() -> None:
    text = "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
    text += "RuntimeError: NCCL error: unhandled system error, NCCL version 2.18.1\n"
    assert names_of(text) == [("shm", 1, 1), ("nccl-system", 2, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "INFO worker said: RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
        '{"level":"info","msg":"task failed: CUDA out of memory"}',
        '{"level":"info","msg":"retrying","error":"CUDA out of memory"}',
        "I0901 02:13:44.120 1 main.cpp:12] CUDA out of memory",
        "WARNING INFO follows: CUDA out of memory",
        "run with NCCL_DEBUG=INFO for details: CUDA out of memory",
    ],
)
def test_an_error_that_is_told_quietly_is_one(text: str) -> None:
    assert names_of(text) == [("oom", 1, 1)]


def test_a_secret_that_a_build_was_not_given_is_told() -> None:
    text = "ERROR: failed to solve: secret hf_token: not found"
    assert names_of(text) == [("secret-missing", 1, 1)]


def test_a_long_line_is_searched_to_its_end_and_counts_once() -> None:
    for before in (100, 3490, 3990, 4300, 7400, 1_000_000):
        assert names_of("\n" + "x" * before + f" {KERNEL} " + "y" * 9000) == [
            ("no-kernel-image", 2, 1)
        ]


def test_every_pattern_has_characters_that_a_quick_look_can_go_by() -> None:
    for error in load_errors():
        for text in error.match:
            assert len(patterns.anchor(text)) >= 5, text


@pytest.mark.parametrize(
    ("pattern", "anchor"),
    [
        (r"\bmanifest unknown\b", "fest unknown"),
        (r"shared? memory", "memory"),
        (r"abc\.so [xyz]+ (one|two three)* end", "abc.so "),
        (r"x\s+Killed{2,3} y", "Kille"),
        ("one|two", ""),
    ],
)
def test_an_anchor_is_what_every_match_has(pattern: str, anchor: str) -> None:
    found = patterns.anchor(pattern)
    assert (found in anchor or anchor in found) if anchor else not found
    assert found == anchor or pattern.startswith("shared")


def test_most_lines_are_passed_by_quickly() -> None:
    lines = [f"INFO step {number} loss 0.5 CUDA graphs on, 413 MiB" for number in range(100_000)]
    start = time.process_time()
    assert diagnose.find(lines) == ()
    # Two seconds for 16 MB; these are 5 MB, on a machine that may do other things too.
    assert time.process_time() - start < 4


def run(*words: str, text: str = "") -> Result:
    return CliRunner().invoke(main, ["diagnose", "-", *words], input=text)


def test_the_command_says_whose_fault_why_and_what_mends_it() -> None:
    done = run(
        text="one\nRuntimeError: CUDA error: no kernel image is available for execution on\n"
    )
    assert done.exit_code == 4
    done = run(text="one\nCUDA error: no kernel image is available for execution on the device\n")
    assert done.exit_code == 0
    assert done.stdout.startswith("1  no-kernel-image: image  (line 2)\n")
    for word in (
        "   found  ",
        "   cause  ",
        "   when   ",
        "   fix    ",
        "   fact   [errors/error/",
    ):
        assert word in done.stdout


def test_nothing_known_ends_with_4() -> None:
    done = run(text="all is well\n")
    assert (done.exit_code, done.stdout) == (4, "")
    assert done.stderr == "no error that is known here\n"
    assert json.loads(run("--json").stdout) == {"errors": [], "verdict": None}


def test_a_file_that_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"\xff\xfe\x00CUDA out of memory\x80\n")
    done = CliRunner().invoke(main, ["diagnose", str(path), "--json"])
    assert [error["name"] for error in json.loads(done.stdout)["errors"]] == ["oom"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_log_of_windows_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.log"
    start = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(start + f"one\r\n{KERNEL}\r\nå\r\n".encode(encoding))
    done = CliRunner().invoke(main, ["diagnose", str(path), "--json"])
    assert [(e["name"], e["line"]) for e in json.loads(done.stdout)["errors"]] == [
        ("no-kernel-image", 2)
    ]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    text = (REPOSITORY / "matrix.toml").read_text(encoding="utf-8")
    (tmp_path / "matrix.toml").write_text(text, encoding="utf-8")
    cell = {**image().cell, "cuda": "12.4", "framework": "torch==2.6.0"}
    write_state(tmp_path / ".gpulayers", [image("old", cell=cell)])
    return tmp_path


NO_KERNEL = "CUDA error: no kernel image is available for execution on the device\n"
ON_BLACKWELL = ("--gpu", "RTX 5090", "--driver", "580.95.05")


@pytest.mark.parametrize(
    "name",
    [
        *("old", "old-edge", "127.0.0.1:5000/acme/gpu:old-edge", image("old").ref),
        "torch2.6.0-cu124-py3.12-debian12",
    ],
)
def test_it_says_that_the_verdict_had_foretold_it(project: Path, name: str) -> None:
    words = ("--project", str(project), "--image", name, *ON_BLACKWELL)
    done = run(*words, text=NO_KERNEL)
    assert done.exit_code == 0, done.stderr
    assert "   foretold by the verdict on " in done.stdout
    assert "broken: torch 2.6.0 (cu124) does not run on RTX 5090" in done.stdout
    found = json.loads(run(*words, "--json", text=NO_KERNEL).stdout)
    assert found["errors"][0]["foretold"] is True
    assert found["verdict"]["verdict"] == "broken"


def test_what_the_verdict_did_not_foretell_is_not_claimed(project: Path) -> None:
    words = ("--project", str(project), "--image", "old", "--gpu", "A100", "--driver", "580.95.05")
    found = json.loads(run(*words, "--json", text="CUDA out of memory\n").stdout)
    assert found["errors"][0]["foretold"] is False
    assert found["verdict"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--image", "old"), 2, "wanted --image, --gpu and --driver together"),
        (("--image", "gone", *ON_BLACKWELL), 4, "wanted an image that was built here or a tag"),
        (("--image", "old", "--gpu", "RTX 5O9O", "--driver", "580"), 2, "unknown GPU"),
    ],
)
def test_wrong_words_are_told(project: Path, words: Sequence[str], code: int, said: str) -> None:
    done = run("--project", str(project), *words, text=NO_KERNEL)
    assert done.exit_code == code
    assert said in done.stderr
