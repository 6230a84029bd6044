"""The state folder becomes images, tags with their holders, and packages."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_samples import NAME, gates, image, write_sbom, write_state

from gpulayers import catalog
from gpulayers.catalog.parse import parse_image
from gpulayers.catalog.state import seen_by
from gpulayers.engine.registry import digest_of
from gpulayers.errors import ProjectError
from gpulayers.history import History, Move
from gpulayers.record import Failure, ImageRecord, Records, format_image, no_gates, not_run, write

EDGE = f"{NAME}:app-edge"
OTHER = digest_of(b"built later")
FAILURE = Failure(
    blocks="build",
    cls="build-step-failed",
    step="python-3.11",
    exit=3,
    stderr_tail=("no space",),
    repeat="docker buildx bake app",
)


def broken() -> ImageRecord:
    return image(
        "broken",
        ref="",
        digest="",
        tags=(),
        layers=(),
        status="failed",
        gates=no_gates("not-built", "not built"),
        failure=FAILURE,
    )


def move(ref: str, new: str, *, time: str, old: str = "") -> Move:
    return Move(time=time, channel="edge", ref=ref, old=old, new=new, who="promote")


@pytest.mark.parametrize("each", [image(), broken()], ids=["made", "not made"])
def test_an_image_reads_back_as_it_was_written(each: ImageRecord) -> None:
    assert parse_image(json.loads(json.dumps(format_image(each)))) == each


@pytest.mark.parametrize(
    "document", [None, [], {}, {"status": "built"}, {"status": "odd", "tag": "a", "platform": "b"}]
)
def test_what_is_no_image_is_none(document: object) -> None:
    assert parse_image(document) is None


def test_a_gate_with_an_unknown_status_is_not_there() -> None:
    table = format_image(image()) | {"gates": {"scan": {"status": "great"}}}
    found = parse_image(table)
    assert found is not None
    assert found.gates == {}


def test_a_folder_without_a_run_is_empty(tmp_path: Path) -> None:
    state = catalog.read(tmp_path)
    assert (state.last, state.older, state.images, state.holders) == ((), (), (), {})


def test_the_last_run_is_read_in_its_order_with_what_was_not_made(tmp_path: Path) -> None:
    state = catalog.read(write_state(tmp_path, [image("z"), broken(), image("a")]))
    assert [each.tag for each in state.last] == ["z", "broken", "a"]
    assert [each.tag for each in state.images] == ["z", "a"]
    assert (state.started, state.exit_code) == ("2026-12-01T10:00:00Z", 6)
    assert state.older == ()


def test_records_of_earlier_runs_are_older_images(tmp_path: Path) -> None:
    write_state(tmp_path, [image("old")])
    write_state(tmp_path, [image("new")])
    state = catalog.read(tmp_path)
    assert [each.tag for each in state.last] == ["new"]
    assert [each.tag for each in state.older] == ["old"]


def test_a_record_younger_than_the_report_counts(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    again = image(gates=gates(scan=not_run("scan-report-missing", "gone")))
    Records(tmp_path / "records").write(again)
    assert catalog.read(tmp_path).last == (again,)


def test_a_record_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    (tmp_path / "records" / f"{'0' * 64}.json").write_text("{", encoding="utf-8")
    write(tmp_path / "records" / f"{'1' * 64}.json", format_image(image("copied")))
    assert [each.tag for each in catalog.read(tmp_path).images] == ["app"]


@pytest.mark.parametrize("text", ["{", "[]", '{"images": 1}'])
def test_a_report_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    with pytest.raises(ProjectError, match=r"report\.json: wanted a report"):
        catalog.read(tmp_path)


def test_a_tag_belongs_to_the_image_that_had_it_last(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    rebuilt = replace(image(), digest=OTHER, ref=f"{NAME}@{OTHER}")
    write(tmp_path / "report.json", {"schema": 1, "images": [format_image(rebuilt)]})
    state = catalog.read(tmp_path)
    assert state.holders[EDGE] == OTHER


def test_a_later_move_in_the_history_counts_over_the_report(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    history = History(tmp_path / "channels.json")
    history.append([move(EDGE, OTHER, time="2027-12-01T00:00:00.000000Z")])
    assert catalog.read(tmp_path).holders[EDGE] == OTHER


def test_an_earlier_move_in_the_history_does_not(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    history = History(tmp_path / "channels.json")
    history.append([move(EDGE, OTHER, time="2023-01-01T00:00:00.000000Z")])
    assert catalog.read(tmp_path).holders[EDGE] == image().digest


def test_what_the_registry_says_of_a_tag_counts_over_all(tmp_path: Path) -> None:
    state = catalog.read(write_state(tmp_path, [image()]))
    content = next(ref for ref in state.holders if ref != EDGE)
    found = seen_by(state, {EDGE: None, content: OTHER})
    assert found.holders == {content: OTHER}


def test_packages_come_from_the_bill_of_materials(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    write_sbom(tmp_path, image().digest, torch="2.8.0", Jinja2="3.1.6")
    (wheels,) = catalog.read(tmp_path).wheels.values()
    assert list(wheels.items()) == [("Jinja2", "3.1.6"), ("torch", "2.8.0")]


def test_no_bill_of_materials_is_no_packages(tmp_path: Path) -> None:
    state = catalog.read(write_state(tmp_path, [image()]))
    assert state.wheels == {image().digest: {}}
