"""How far a build has come: a recorded build, and the lines that it is shown by."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from lock_samples import cells_of, lock_for, packaged_library, read_matrix
from rich.console import Console

from gpulayers.cli.progress import SILENCE_S, Progress
from gpulayers.cli.tally import Tally, clock
from gpulayers.engine.buildx import Transfer, Vertex
from gpulayers.engine.progress import Progress as Events
from gpulayers.lock import wanted
from gpulayers.plan import make as plan_make
from gpulayers.plan.model import Ground, Plan

ROOT = Path(__file__).parents[2]
PULL = ROOT / "tests" / "fixtures" / "buildx" / "pulled.rawjson"
MB = 10**6


@pytest.fixture(scope="module")
def plan() -> Plan:
    matrix, library = read_matrix(ROOT / "examples" / "demo" / "matrix.toml"), packaged_library()
    cells = cells_of(matrix)[:2]
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    whole = plan_make.make(Ground(matrix=matrix, library=library, lock=lock, root="r"), cells)
    return replace(whole)


def vertex(name: str, **named: object) -> Vertex:
    known = {"started": True, "cached": False, "completed": False, "error": ""}
    return Vertex(name=name, **{**known, **named})  # type: ignore[arg-type]


def run(plan: Plan, tally: Tally, stage: str, now_s: float, parts: int = 1) -> None:
    for part in range(1, parts + 1):
        name = f"[{stage} {part}/{parts}] RUN x"
        tally.work(plan.images[0], vertex(name), now_s)
        tally.work(plan.images[0], vertex(name, completed=True), now_s)


def test_a_step_is_done_with_its_last_part_and_told_once(plan: Plan) -> None:
    tally, image = Tally(plan=plan, begin_s=0), plan.images[0]
    step = image.steps[0]

    def heard(part: str, **named: object) -> object:
        return tally.work(image, vertex(f"[{step.stage} {part}] RUN x", **named), 1)

    assert heard("1/2") == (step.name, "running")
    assert heard("1/2", completed=True) is None
    assert heard("2/2") is None
    assert heard("2/2", completed=True, error="exit code: 1") is None
    assert heard("2/2", completed=True) == (step.name, "done")
    assert heard("2/2", completed=True) is None
    assert tally.steps_of(image) == (1, len(image.steps))


def test_copies_of_steps_and_other_work_are_no_steps(plan: Plan) -> None:
    tally, image = Tally(plan=plan, begin_s=0), plan.images[0]
    for name in (
        f"[final 1/9] COPY --link --from={image.steps[0].stage} /out/ /",
        "exporting to image",
        "[identity 1/2] RUN x",
    ):
        assert tally.work(image, vertex(name, completed=True), 1) is None


def test_the_share_of_the_work_grows_to_all_of_it(plan: Plan) -> None:
    tally = Tally(plan=plan, begin_s=0)
    shares = [tally.share()]
    for step in plan.steps:
        run(plan, tally, step.stage, 1)
        shares.append(tally.share())
    for image in plan.images:
        tally.state(image, "built", "", 2)
        shares.append(tally.share())
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)


def test_what_was_there_before_is_no_work(plan: Plan) -> None:
    tally = Tally(plan=plan, begin_s=0)
    tally.state(plan.images[0], "cached", "", 0)
    assert tally.share() == 0
    tally.state(plan.images[1], "cached", "", 0)
    assert tally.share() == 1


def test_the_time_that_is_left_is_told_when_it_can_be_known(plan: Plan) -> None:
    tally = Tally(plan=plan, begin_s=100)
    assert tally.left_s(200) is None
    for step in plan.steps:
        run(plan, tally, step.stage, 101)
    assert tally.left_s(101) is None
    share = tally.share()
    assert tally.left_s(200) == pytest.approx(100 * (1 - share) / share)
    assert "about" in tally.overall(200)
    for image in plan.images:
        tally.state(image, "built", "", 200)
    assert "about" not in tally.overall(200)


def test_bytes_that_several_images_wait_for_come_once(plan: Plan) -> None:
    tally = Tally(plan=plan, begin_s=0)
    for current in (3 * MB, 5 * MB, 4 * MB):
        for layer in ("sha256:a", "sha256:b", "extracting sha256:a"):
            tally.transfer(
                Transfer(vertex="v", id=layer, current_bytes=current, total_bytes=9 * MB)
            )
    assert tally.downloaded_bytes == 10 * MB
    tally.sent_bytes += 2 * MB
    assert "10.0 MB downloaded · 2.0 MB pushed · 1:05" in tally.overall(65)


def test_a_recorded_pull_is_counted_to_its_last_byte(plan: Plan) -> None:
    tally = Tally(plan=plan, begin_s=0)
    events = Events(on_transfer=tally.transfer)
    for line in PULL.read_text(encoding="utf-8").splitlines():
        events.take(line)
        assert json.loads(line)
    assert tally.downloaded_bytes == 25_076_494


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-1, "0:00"), (59.9, "0:59"), (61, "1:01"), (3661, "1:01:01")]
)
def test_times_are_shown_as_clocks_do(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def shown(plan: Plan, *, in_ci: bool = False, quiet: bool = False) -> list[str]:
    out, time = io.StringIO(), Clock()
    console = Console(file=out, width=200)
    with Progress(plan=plan, quiet=quiet, console=console, in_ci=in_ci, now=time) as progress:
        image = plan.images[0]
        name = f"[{image.steps[0].stage} 1/1] RUN x"
        progress.state(image, "building")
        progress.work(image, vertex(name))
        progress.work(image, vertex(name, completed=True))
        time.now_s += SILENCE_S
        progress.transfer(
            image, Transfer(vertex="v", id="sha256:a", current_bytes=MB, total_bytes=MB)
        )
        progress.sent(image, MB)
        progress.state(image, "gates")
        progress.state(image, "failed", "push-failed in push")
    return [line.partition("] ")[2] for line in out.getvalue().splitlines()]


def test_without_a_terminal_lines_say_what_is_done_and_break_a_silence(plan: Plan) -> None:
    step, heartbeat, end = shown(plan)
    assert step == f"step {plan.images[0].steps[0].name}: done"
    assert heartbeat.startswith(f"images 0/2 · steps 1/{len(plan.steps)} · 1.0 MB downloaded")
    assert end == f"{plan.images[0].tag}: failed (push-failed in push)"


def test_in_ci_only_ends_of_images_are_told_and_with_quiet_nothing(plan: Plan) -> None:
    assert shown(plan, in_ci=True) == [f"{plan.images[0].tag}: failed (push-failed in push)"]
    assert shown(plan, quiet=True) == []


def test_the_live_view_has_a_row_for_what_is_under_way_and_one_line_for_all(plan: Plan) -> None:
    time, out = Clock(), io.StringIO()
    console = Console(file=out, width=200)
    progress = Progress(plan=plan, quiet=False, console=console, in_ci=False, now=time)
    image = plan.images[0]
    progress.state(image, "building")
    progress.work(image, vertex(f"[{image.steps[0].stage} 1/1] RUN x"))
    time.now_s += 75
    console.print(progress.view())
    lines = out.getvalue().splitlines()
    row = next(line for line in lines if line.startswith(image.tag))
    assert row.split() == [
        *(image.tag, "building", f"0/{len(image.steps)}", "1:15", image.steps[0].name)
    ]
    assert not any(line.startswith(f"{plan.images[1].tag} ") for line in lines)
    assert lines[-1].split(" · ")[0] == "images 0/2"
