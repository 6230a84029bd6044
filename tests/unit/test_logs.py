"""Logs of builds: lines that people read, kept while they come, found again."""

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpulayers import logs
from gpulayers.cli import main
from gpulayers.engine.plainlog import PlainLog
from gpulayers.engine.progress import Progress

RECORDED = Path(__file__).parents[1] / "fixtures" / "buildx"
BEGUN = "2026-12-01T03:58:33.500000000Z"


def vertex(name: str, **more: object) -> dict[str, object]:
    return {"vertexes": [{"digest": f"sha256:{name}", "name": name, "started": BEGUN, **more}]}


def said(name: str, text: bytes) -> dict[str, object]:
    data = base64.b64encode(text).decode()
    return {"logs": [{"vertex": f"sha256:{name}", "data": data}]}


def lines(*events: dict[str, object]) -> list[str]:
    written: list[str] = []
    log = PlainLog(written.append)
    for event in events:
        log.take(event)
    log.close()
    return written


def test_a_step_is_begun_says_its_lines_and_ends() -> None:
    done = vertex("a", completed="2026-12-01T03:58:35.000000000Z")
    assert lines(vertex("a"), said("a", b"one\ntw"), said("a", b"o\n\nend"), done, done) == [
        "#1 a",
        "#1 | one",
        "#1 | two",
        "#1 | end",
        "#1 DONE 1.5s",
    ]


def test_steps_that_run_side_by_side_keep_their_numbers() -> None:
    events = [vertex("a"), vertex("b", cached=True, completed=BEGUN), said("a", b"x\n")]
    assert lines(*events) == ["#1 a", "#2 b", "#2 CACHED", "#1 | x"]


def test_an_error_is_one_line() -> None:
    assert lines(vertex("a", completed=BEGUN, error="no\n  way"))[-1] == "#1 ERROR no way"


def test_a_secret_that_came_in_two_pieces_is_blanked() -> None:
    assert lines(said("a", b"HF_TO"), said("a", b"KEN=hush\n")) == ["#0 | HF_TOKEN=***"]


def test_of_a_progress_bar_the_last_state_stays() -> None:
    assert lines(said("a", b"1%\r2%\r3%\r\n")) == ["#0 | 3%"]


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    log = PlainLog(lambda _: None)
    for _ in range(50):
        log.take(said("a", b"x" * 10_000))
    assert sum(len(rest) for rest in log._open.values()) <= 64_000


@pytest.mark.parametrize("event", [{"vertexes": 1}, {"logs": [1, {"data": "é"}]}, {}])
def test_what_is_not_understood_is_passed_over(event: dict[str, object]) -> None:
    assert lines(event) == []


def recorded(name: str, folder: Path) -> str:
    with logs.keep(folder, "app", "image app") as log:
        progress = Progress(events=log.events)
        for line in (RECORDED / name).read_text(encoding="utf-8").splitlines():
            progress.take(line)
        failure = progress.failure()
        log.end("failed", f"in {failure.step}, exit {failure.exit}")
    return (folder / "app.log").read_text(encoding="utf-8")


def test_a_real_failure_is_kept_with_its_step_and_shown_alone(tmp_path: Path) -> None:
    text = recorded("failed.rawjson", tmp_path)
    failed = logs.failed_part(text)
    assert text.startswith("gpulayers: image app\n#1 [internal] load local bake definitions\n")
    assert " ERROR " in failed
    assert len(failed.splitlines()) < len(text.splitlines())
    assert failed.splitlines()[-1] == text.splitlines()[-1]
    (kept,) = logs.find(tmp_path)
    assert (kept.tag, kept.status) == ("app", "failed")
    assert kept.detail.startswith("in ")


def test_a_cache_that_is_not_there_is_no_failure() -> None:
    text = "#1 importing cache manifest from r\n#1 ERROR not found\n#2 run\n#2 ERROR exit code: 3\n"
    assert logs.failed_part(text) == "#2 run\n#2 ERROR exit code: 3\n"


def test_a_log_without_an_end_is_unfinished(tmp_path: Path) -> None:
    with logs.keep(tmp_path, "app", "image app") as log:
        log.line("#1 something")
    assert [kept.status for kept in logs.find(tmp_path)] == ["unfinished"]


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    with logs.keep(tmp_path / "logs", "app", "image app") as log:
        log.line("lost")
        log.end("built", "sha256:0")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a log that was built and one that failed."""
    (tmp_path / "matrix.toml").write_text("schema = 1\n", encoding="utf-8")
    folder = tmp_path / ".gpulayers" / "logs"
    recorded("failed.rawjson", folder)
    with logs.keep(folder, "fine", "image fine") as log:
        log.end("built", "sha256:0")
    return tmp_path


def gpulayers(project: Path, *words: str) -> list[str]:
    result = CliRunner().invoke(main, ["logs", "--project", str(project), *words])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_logs_are_listed_with_their_ends(project: Path) -> None:
    failed, built = gpulayers(project)
    assert failed.startswith("failed     app  ")
    assert built.startswith("built      fine  ")
    assert gpulayers(project, "--failed") == [failed]
    rows = json.loads("\n".join(gpulayers(project, "--json")))
    assert [(row["tag"], row["status"]) for row in rows] == [("app", "failed"), ("fine", "built")]


def test_a_log_is_printed_by_its_tag(project: Path) -> None:
    assert gpulayers(project, "fine") == ["gpulayers: image fine", "gpulayers: built sha256:0"]


def test_a_log_that_is_not_there_is_refused_with_its_place(project: Path) -> None:
    result = CliRunner().invoke(main, ["logs", "--project", str(project), "nope"])
    assert result.exit_code == 4
    assert "nope: wanted a log in" in result.stderr
