"""Records and reports: their keys are a contract, and so is the exit code they add up to."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulayers import errors
from gpulayers.errors import ProjectError
from gpulayers.record import (
    EXIT_CODES,
    GATES,
    Failure,
    Gate,
    GateName,
    ImageRecord,
    Layer,
    Records,
    Report,
    format_image,
    format_report,
    no_gates,
    not_run,
    read_images,
    write,
)

DIGEST = "sha256:" + "a" * 64
PASSED = Gate(status="passed", cls="", text="fine", seconds=1.256)
ALL_PASSED: dict[GateName, Gate] = dict.fromkeys(GATES, PASSED)
ORDER = ["build", "identity", "secrets", "duplicates", "size", "scan", "smoke", "push"]


def failure(blocks: str) -> Failure:
    return Failure(
        blocks=blocks,
        cls=f"{blocks}-failed",
        step="cuda-wheels",
        exit=3,
        stderr_tail=("one", "two"),
        repeat="docker buildx bake x",
    )


def image(*sizes: int, **changes: object) -> ImageRecord:
    made = ImageRecord(
        cell={"os": "debian12", "cuda": "12.8"},
        platform="linux/amd64",
        key="0" * 64,
        tag="torch",
        ref=f"r.example/gpu@{DIGEST}",
        digest=DIGEST,
        tags=("torch-edge",),
        status="built",
        layers=tuple(
            Layer(digest=f"sha256:{size}", size_bytes=size, step=f"step-{size}") for size in sizes
        ),
        gates=ALL_PASSED,
        failure=None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def report(*images: ImageRecord, interrupted: bool = False) -> Report:
    return Report(
        started="2026-01-01T00:00:00Z",
        seconds=61.234,
        engine={"docker": "28.5.2", "buildx": "0.29.1"},
        images=images,
        pushed_bytes=7,
        interrupted=interrupted,
    )


def failed(*blocks: str) -> Report:
    images = [image(1, status="failed", failure=failure(word)) for word in blocks]
    return report(image(2), *images)


def test_the_report_has_the_keys_that_users_script_against() -> None:
    document = format_report(report(image(1, 2, failure=failure("build"))))
    assert list(document) == [
        *("schema", "started", "seconds", "exit_code", "engine", "bytes", "images"),
    ]
    assert document["schema"] == 1
    assert document["seconds"] == 61.2
    assert document["engine"] == {"docker": "28.5.2", "buildx": "0.29.1"}
    assert document["bytes"] == {"unique": 3, "sum": 3, "pushed": 7}


def test_an_image_has_the_keys_that_users_script_against() -> None:
    document = format_image(image(1, failure=failure("build")))
    wanted = {"cell", "key", "ref", "digest", "tags", "status", "layers", "gates", "failure"}
    assert wanted <= document.keys()
    assert document["layers"] == [{"digest": "sha256:1", "bytes": 1, "step": "step-1"}]
    gates = document["gates"]
    assert isinstance(gates, dict)
    assert list(gates) == ["identity", "secrets", "duplicates", "size", "scan", "smoke"]
    assert gates["scan"] == {"status": "passed", "class": "", "text": "fine", "seconds": 1.26}
    assert document["failure"] == {
        "class": "build-failed",
        "blocks": "build",
        "step": "cuda-wheels",
        "exit": 3,
        "stderr_tail": ["one", "two"],
        "repeat": "docker buildx bake x",
    }
    assert format_image(image())["failure"] is None


def test_all_of_it_is_json(tmp_path: Path) -> None:
    path = tmp_path / "state" / "report.json"
    document = format_report(report(image(1, failure=failure("scan"))))
    write(path, document)
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert [each.name for each in path.parent.iterdir()] == ["report.json"]


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write(path, {"schema": 1})
    with pytest.raises(TypeError):
        write(path, {"bad": object()})
    assert json.loads(path.read_text(encoding="utf-8")) == {"schema": 1}


def test_bytes_count_a_shared_layer_once_and_the_sum_as_often_as_it_is_there() -> None:
    both = report(image(10, 5), image(10, 7), image(10, 10))
    assert (both.unique_bytes, both.sum_bytes) == (22, 42)
    assert image(10, 10).size_bytes == 10


def test_without_failures_the_exit_code_is_0() -> None:
    assert report().exit_code == 0
    assert report(image(), image(status="cached"), image(status="not-tried")).exit_code == 0


def test_the_codes_stand_in_the_order_of_the_pipeline() -> None:
    assert [word for word in EXIT_CODES if word in ORDER] == ORDER
    codes = {word: EXIT_CODES[word] for word in ORDER}
    assert list(codes.values()) == [6, 8, 8, 8, 16, 7, 8, 9]
    assert EXIT_CODES["scan-not-made"] == 14


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(EXIT_CODES, 2)))
def test_of_two_failures_the_first_in_the_pipeline_gives_the_code(first: str, second: str) -> None:
    assert failed(first, second).exit_code == EXIT_CODES[first]
    assert failed(second, first).exit_code == EXIT_CODES[first]


def test_an_interrupt_goes_before_all_failures() -> None:
    assert report(image(failure=failure("build")), interrupted=True).exit_code == 130


def test_a_failure_that_is_not_known_here_is_a_bug_and_never_a_success() -> None:
    assert failed("weather").exit_code == 1
    assert failed("weather", "push").exit_code == 9
    assert report(image(status="failed")).exit_code == 1


def test_every_code_is_one_that_an_error_of_ours_owns() -> None:
    owned = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.GpulayersError)
    }
    assert set(EXIT_CODES.values()) <= owned


def test_a_gate_that_did_not_speak_says_why() -> None:
    gates = no_gates("build-step-failed", "there is no image")
    assert list(gates) == list(GATES)
    assert set(gates.values()) == {not_run("build-step-failed", "there is no image")}
    assert gates["scan"].status == "not-run"


def test_words_for_classes_are_kebab_case() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", word) for word in EXIT_CODES)


STATUS = st.sampled_from(["passed", "failed", "not-run", "simulated"])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(STATUS, st.text(max_size=9), st.floats(0, 1e6)), min_size=6, max_size=6))
def test_what_gates_said_reads_back(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str, float]]
) -> None:
    gates: dict[GateName, Gate] = {
        name: Gate(status=status, cls="x", text=text, seconds=round(seconds, 2))  # type: ignore[arg-type]
        for name, (status, text, seconds) in zip(GATES, said, strict=True)
    }
    records = Records(tmp_path_factory.mktemp("records"))
    records.write(image(gates=gates))
    assert records.read_gates(DIGEST) == gates


def test_an_image_that_was_not_made_leaves_no_record(tmp_path: Path) -> None:
    Records(tmp_path / "records").write(image(digest="", ref="", failure=failure("build")))
    assert not (tmp_path / "records").exists()


def put(folder: Path, text: str) -> Records:
    (folder / f"{'a' * 64}.json").write_text(text, encoding="utf-8")
    return Records(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"gates": []}',
        '{"gates": {}}',
        '{"gates": {"scan": {"status": "passed"}}}',
        json.dumps({"gates": {key: {"status": "great"} for key in GATES}}),
        json.dumps({"gates": {key: {"status": "passed"} for key in GATES}, "failure": {}}),
    ],
)
def test_a_record_that_does_not_say_what_every_gate_said_says_nothing(
    tmp_path: Path, text: str
) -> None:
    assert put(tmp_path, text).read_gates(DIGEST) is None


def test_a_digest_without_a_record_is_not_known(tmp_path: Path) -> None:
    assert Records(tmp_path).read_gates(DIGEST) is None


def test_a_gate_of_an_older_record_may_lack_all_but_its_status(tmp_path: Path) -> None:
    text = json.dumps({"gates": {key: {"status": "passed", "seconds": "x"} for key in GATES}})
    gates = put(tmp_path, text).read_gates(DIGEST)
    assert gates is not None
    assert gates["scan"] == Gate(status="passed", cls="", text="", seconds=0.0)


def test_the_images_of_a_report_file_are_read_as_tables(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert read_images(path) == ()
    write(path, format_report(report(image(1))))
    assert read_images(path) == (format_image(image(1)),)
    path.write_text('{"schema": 1, "images": [3, {}]}')
    assert read_images(path) == ({},)
    path.write_text('{"schema": 1}')
    assert read_images(path) == ()


def test_a_report_file_that_is_no_json_is_told(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("{")
    with pytest.raises(ProjectError, match=r"report\.json: wanted a report in JSON") as caught:
        read_images(path)
    assert caught.value.hint
