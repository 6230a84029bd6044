import pytest
import smoke_samples as samples

from gpulayers.engine.docker import ContainerState
from gpulayers.smoke import classify, parse
from gpulayers.smoke.classes import IMAGE_FAULTS, NEXT, Class, Status, status_of
from gpulayers.smoke.model import CallError, Level

HOOK = "error during container init: error running hook #0: error running hook: exit status 1"
# Sentences of engine 28.5.2 (measured) and of 29.2 and 29.3 (their source).
REFUSALS = [
    ('could not select device driver "" with capabilities: [[gpu]]', Class.ENGINE_NO_GPU_SUPPORT),
    ('could not select device driver "cdi" with capabilities: []', Class.ENGINE_NO_GPU_SUPPORT),
    ("failed to discover GPU vendor from CDI: no known GPU vendor", Class.ENGINE_NO_GPU_SUPPORT),
    ("AMD CDI spec not found", Class.ENGINE_NO_GPU_SUPPORT),
    ("CDI device injection failed: unresolvable CDI devices a=all", Class.CDI_UNRESOLVABLE),
    ("unknown or invalid runtime name: nvidia", Class.RUNTIME_MISSING),
    (f"{HOOK}, stdout: , stderr: no such thing", Class.CDI_SPEC_BROKEN),
    ("error running hook #0: fork/exec /x: no such file or directory", Class.CDI_SPEC_BROKEN),
    ('error mounting "/x/nvidia-smi" to rootfs at "/usr/bin"', Class.CDI_SPEC_BROKEN),
    (f"{HOOK}: nvidia-container-cli: device error: 9: unknown device", Class.DEVICE_UNKNOWN),
    (
        f"{HOOK}: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0",
        Class.REQUIREMENT_UNMET,
    ),
    (
        f"{HOOK}: nvidia-container-cli: initialization error: nvml error: driver not loaded",
        Class.NO_DRIVER,
    ),
    (
        'unable to start container process: exec: "nosuch": executable file not found in $PATH',
        Class.COMMAND_MISSING,
    ),
    ("No such image: nosuch:1", Class.IMAGE_NOT_PULLED),
    ("something new", Class.NEVER_STARTED),
]


@pytest.mark.parametrize(("said", "cls"), REFUSALS, ids=[text[-40:] for text, _ in REFUSALS])
def test_a_refused_start_is_told_by_the_engines_sentence(said: str, cls: Class) -> None:
    state = ContainerState(status="created", exit_code=128, oom_killed=False, error=said)
    assert classify.of_start(Level.GPU, state, "") is cls
    assert classify.of_start(Level.GPU, samples.RUNNING, said) is cls


@pytest.mark.parametrize(("code", "cls"), classify.CUDA_CODES.items())
def test_a_code_of_cuda_is_told_at_the_gpu_level_alone(code: int, cls: Class) -> None:
    broken = samples.line(ok=False, error=CallError(call="cuInit", code=code, name="X"))
    assert classify.of_script(Level.GPU, samples.result(broken, code=1)) is cls
    assert classify.of_script(Level.CPU, samples.result(broken, code=1)) is Class.CHECK_FAILED


def test_a_driver_that_is_not_there_is_told() -> None:
    found = parse.result(samples.check(Level.GPU), samples.finished(samples.NO_LIBCUDA, code=1))
    assert classify.of_script(Level.GPU, found) is Class.NO_DRIVER


def test_an_error_that_a_framework_only_logged_is_told() -> None:
    said = ("[E:onnxruntime] CUDA failure 35: CUDA driver version is insufficient",)
    found = samples.result(samples.line(ok=False), code=1, said=said)
    assert classify.of_script(Level.GPU, found) is Class.DRIVER_TOO_OLD
    assert classify.of_script(Level.CPU, found) is Class.CHECK_FAILED


def test_a_crash_and_a_missing_command_are_no_failed_checks() -> None:
    assert classify.of_script(Level.CPU, samples.result(code=1)) is Class.SCRIPT_CRASHED
    assert classify.of_script(Level.CPU, samples.result(code=127)) is Class.COMMAND_MISSING
    assert classify.of_script(Level.CPU, samples.result()) is Class.SCRIPT_CRASHED


def test_a_stand_in_that_reached_its_end_is_seen() -> None:
    found = parse.result(samples.check(Level.GPU), samples.finished(samples.STAND_IN, code=1))
    assert classify.is_stand_in([found])


def test_a_stand_in_that_claims_a_kernel_is_still_one() -> None:
    text = samples.REAL_GPU.replace('"stand_in": false', '"stand_in": true')
    assert classify.is_stand_in([parse.result(samples.check(Level.GPU), samples.finished(text))])


def test_a_stand_in_told_to_fail_earlier_gives_that_failure() -> None:
    text = samples.STAND_IN.replace("801", "803")
    found = parse.result(samples.check(Level.GPU), samples.finished(text, code=1))
    assert not classify.is_stand_in([found])
    assert classify.of_script(Level.GPU, found) is Class.DRIVER_MISMATCH


def test_only_an_images_own_fault_marks_it_failed() -> None:
    failed = {cls for cls in Class if status_of(cls) is Status.FAILED}
    assert failed == IMAGE_FAULTS
    assert [cls for cls in Class if status_of(cls) is Status.PASSED] == [Class.NONE]


def test_every_class_that_is_no_image_fault_says_what_to_do() -> None:
    assert set(NEXT) == set(Class) - IMAGE_FAULTS - {Class.NONE}
