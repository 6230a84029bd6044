"""What killed processes left is swept at the next start, and what others still use is not."""

import tempfile
from pathlib import Path

import pytest

from gpulayers import statelock
from gpulayers.cli import working
from gpulayers.errors import ToolError


def test_temporary_files_lie_in_a_folder_that_goes_with_the_process(tmp_path: Path) -> None:
    state, before = tmp_path / ".gpulayers", tempfile.gettempdir()
    with working.alone(state, "build", wait=True):
        place = Path(tempfile.mkdtemp())
        assert place.parent.name.startswith(statelock.scratch_prefix())
        assert place.parent.parent == Path(before)
        with (
            pytest.raises(ToolError, match="gpulayers build"),
            working.alone(state, "lock", wait=False),
        ):
            pytest.fail("two at once")
    assert not place.exists()
    assert tempfile.gettempdir() == before


def test_a_sweep_takes_what_a_killed_process_left_and_no_more(tmp_path: Path) -> None:
    state, place = tmp_path / "project" / ".gpulayers", tmp_path / "tmp"
    (state / "records").mkdir(parents=True)
    pid, start = statelock.owner().split("/")[1:]
    gone = place / f"gpulayers-{pid}-{int(start) + 1}-x"
    kept = [
        place / f"gpulayers-{pid}-{start}-x",
        place / "gpulayers-notes",
        place / "other-1-1-x",
        state.parent / ".notes.new",
        state / "report.json",
    ]
    halves = [
        state.parent / ".matrix.lock.toml.0123abcd.new",
        state / ".report.json.0123abcd.new",
        state / "records" / ".a.json.0123abcd.new",
    ]
    for path in (gone, *kept, *halves):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if path.parent == place else path.write_text("x")
    working.sweep(state, place)
    assert not any(path.exists() for path in (gone, *halves))
    assert all(path.exists() for path in kept)
