import pytest
import smoke_samples as samples

from gpulayers.engine.docker import ABSENT, ContainerState
from gpulayers.smoke import judge, parse
from gpulayers.smoke.classes import Class, Status
from gpulayers.smoke.model import Level, LevelOutcome, ScriptResult

CRASHED = samples.result(code=1, said=("Error response from daemon: not running",))


def judged(
    *scripts: ScriptResult, level: Level = Level.CPU, state: ContainerState = samples.RUNNING
) -> LevelOutcome:
    return judge.outcome(judge.Run(level=level, scripts=scripts, state=state, seconds=1.0))


def test_all_good_passes_without_a_word() -> None:
    outcome = judged(samples.result(samples.line()))
    assert (outcome.status, outcome.cls, outcome.text) == (Status.PASSED, Class.NONE, "")


def test_every_result_that_does_not_hold_is_told_up_to_a_limit() -> None:
    lines = [samples.line(f"c{number}", ok=False) for number in range(7)]
    outcome = judged(samples.result(*lines, code=1))
    assert outcome.text.startswith("cuda/x.py: c0: wanted debian12, found debian13; ")
    assert outcome.text.endswith("; and 2 more")


@pytest.mark.parametrize(
    ("state", "cls", "status"),
    [
        (("exited", 0, False), Class.ENDED_EARLY, Status.FAILED),
        (("exited", 127, False), Class.COMMAND_MISSING, Status.FAILED),
        (("running", 0, True), Class.OUT_OF_MEMORY, Status.NOT_RUN),
        (("running", 0, False), Class.SCRIPT_CRASHED, Status.FAILED),
    ],
)
def test_a_crash_is_explained_by_what_became_of_the_container(
    state: tuple[str, int, bool], cls: Class, status: Status
) -> None:
    word, code, oom = state
    found = ContainerState(status=word, exit_code=code, oom_killed=oom, error="")
    outcome = judged(CRASHED, state=found)
    assert (outcome.cls, outcome.status) == (cls, status)
    assert "found exit 1, said: Error response from daemon: not running" in outcome.text


def test_an_engine_that_went_away_is_not_the_images_fault() -> None:
    outcome = judged(CRASHED, state=ABSENT)
    assert (outcome.status, outcome.cls) == (Status.NOT_RUN, Class.ENGINE_LOST)


def test_a_time_out_names_script_and_time() -> None:
    outcome = judged(samples.result(timed_out=True, code=-15))
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.TIMED_OUT)
    assert outcome.text == "cuda/x.py: no end after 3 s"


def gpu(stdout: str, *, code: int) -> LevelOutcome:
    found = parse.result(samples.check(Level.GPU), samples.finished(stdout, code=code))
    return judged(found, level=Level.GPU)


def test_a_real_gpu_that_computed_is_proven() -> None:
    outcome = gpu(samples.REAL_GPU, code=0)
    assert outcome.status is Status.PASSED
    assert outcome.gpu_proven


def test_a_stand_in_is_simulated_and_proves_nothing() -> None:
    outcome = gpu(samples.STAND_IN, code=1)
    assert (outcome.status, outcome.cls) == (Status.SIMULATED, Class.STAND_IN_DRIVER)
    assert not outcome.gpu_proven


def test_passing_without_a_computed_kernel_proves_nothing() -> None:
    text = "\n".join(samples.REAL_GPU.splitlines()[:3])
    outcome = gpu(text, code=0)
    assert outcome.status is Status.PASSED
    assert not outcome.gpu_proven


def test_a_container_that_never_ran_names_what_the_engine_has() -> None:
    said = 'could not select device driver "" with capabilities: [[gpu]]'
    outcome = judge.not_started(Level.GPU, ABSENT, said, info=samples.INFO, seconds=0.1)
    assert (outcome.status, outcome.cls) == (Status.NOT_RUN, Class.ENGINE_NO_GPU_SUPPORT)
    assert "found engine 28.5.2, CDI devices: none, runtimes: runc" in outcome.text
    assert "wanted a CDI device nvidia.com/gpu" in outcome.text


@pytest.mark.parametrize(
    ("code", "seconds", "ok"), [(143, 0.2, True), (137, 5.2, False), (0, 0.2, False)]
)
def test_only_ending_at_sigterm_in_time_is_good(code: int, seconds: float, *, ok: bool) -> None:
    state = ContainerState(status="exited", exit_code=code, oom_killed=False, error="")
    assert judge.signals(state, seconds).ok is ok


def test_a_crash_is_told_by_its_exception_where_its_text_goes_on() -> None:
    said = ("Traceback (most recent call last):", "ImportError: no numpy", "        reinstall it.")
    outcome = judged(samples.result(code=1, said=said))
    assert outcome.text.endswith("said: ImportError: no numpy")
