import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
import smoke_samples as samples

from gpulayers.engine.docker import Container, ContainerState, EngineInfo, ImageConfig
from gpulayers.engine.process import Finished
from gpulayers.errors import ContractError, GpuNotProvenError, RemoteError
from gpulayers.refs import ImageRef, Platform
from gpulayers.smoke.classes import Class, Status
from gpulayers.smoke.model import Check, Level, SmokeReport
from gpulayers.smoke.run import Options, Subject, gpu_options, run, without_app

GOOD = '{"check": "os", "ok": true}\n'
IMAGE = ImageRef(registry="r:5", repository="a/b", digest=f"sha256:{'a' * 64}")
SUBJECT = Subject(
    image=IMAGE,
    platform=Platform("linux", "amd64"),
    cell={"cuda": "12.6"},
    wheels={"numpy": "2.2.6"},
)
EXITED = ContainerState(status="exited", exit_code=143, oom_killed=False, error="")


@dataclass
class Engine:
    """An engine that answers each script's text from a table and keeps what it was asked."""

    answers: dict[str, Finished]
    engine_info: EngineInfo = samples.INFO
    start_answer: Finished = field(default_factory=samples.finished)
    refused: str = ""
    pull_error: str = ""
    interrupted: bool = False
    started: list[Container] = field(default_factory=list)
    told: list[tuple[str, float]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def info(self) -> EngineInfo:
        return self.engine_info

    def pull(self, ref: ImageRef, platform: Platform) -> None:
        if self.pull_error:
            raise RemoteError(self.pull_error)
        assert (ref, platform) == (SUBJECT.image, SUBJECT.platform)

    def image_config(self, ref: ImageRef) -> ImageConfig:
        assert ref == IMAGE
        return ImageConfig(env={"HOME": "/home/app"}, entrypoint=(), user="10001:0")

    def start(self, container: Container) -> Finished:
        self.started.append(container)
        return self.start_answer

    def execute(self, name: str, argv: Sequence[str], *, stdin: str, timeout_s: float) -> Finished:
        if self.interrupted:
            raise KeyboardInterrupt
        assert name == self.started[-1].name
        assert list(argv) == ["python", "-"]
        self.told.append((stdin, timeout_s))
        return self.answers[stdin]

    def stop(self, name: str, *, grace_s: int) -> Finished:
        assert grace_s == 5
        self.stopped.append(name)
        return samples.finished()

    def inspect(self, name: str) -> ContainerState:
        if self.refused:
            return replace(samples.RUNNING, status="created", error=self.refused)
        return EXITED if name in self.stopped else samples.RUNNING

    def remove(self, name: str) -> None:
        self.removed.append(name)


def cpu(text: str) -> Check:
    return samples.check(text=text)


def gpu(text: str) -> Check:
    return samples.check(Level.GPU, text=text)


def climb(engine: Engine, *checks: Check, **options: object) -> SmokeReport:
    report = run(engine, SUBJECT, checks, options=replace(Options(), **options))  # type: ignore[arg-type]  # options of several types
    assert engine.removed == [container.name for container in engine.started]
    return report


def test_scripts_run_in_order_in_one_container_with_the_cell_told() -> None:
    engine = Engine({"a": samples.finished(GOOD), "b": samples.finished(GOOD)})
    report = climb(engine, cpu("a"), cpu("b"), levels=(Level.CPU,))
    assert report.status is Status.PASSED
    assert [text for text, _ in engine.told] == ["a", "b"]
    (container,) = engine.started
    assert json.loads(container.env["GPULAYERS_CELL"]) == {"cuda": "12.6"}
    assert json.loads(container.env["GPULAYERS_WHEELS"]) == {"numpy": "2.2.6"}
    assert container.tmpfs == ("/home/app", "/tmp")
    assert (container.user, container.gpu) == ("12345:0", ())
    assert report.levels[0].scripts[-1].script == "image/signals"


def test_a_failing_script_does_not_hide_the_next_one() -> None:
    engine = Engine({"a": samples.finished(code=1), "b": samples.finished(GOOD)})
    report = climb(engine, cpu("a"), cpu("b"), gpu("g"))
    assert [text for text, _ in engine.told] == ["a", "b"]
    assert [outcome.cls for outcome in report.levels] == [
        Class.SCRIPT_CRASHED,
        Class.EARLIER_LEVEL_FAILED,
    ]
    assert report.status is Status.FAILED


def test_a_hanging_script_ends_its_level() -> None:
    engine = Engine({"a": samples.finished(timed_out=True, code=-15)})
    report = climb(engine, cpu("a"), cpu("b"), levels=(Level.CPU,), timeout_s=9.0)
    assert (report.status, report.cls) == (Status.FAILED, Class.TIMED_OUT)
    assert [round(left) for _, left in engine.told] == [9]


def test_the_gpu_level_stops_at_the_first_script_that_does_not_pass() -> None:
    engine = Engine({"a": samples.finished(GOOD), "g": samples.finished(samples.STAND_IN, code=1)})
    report = climb(engine, cpu("a"), gpu("g"), gpu("h"))
    assert (report.status, report.cls) == (Status.SIMULATED, Class.STAND_IN_DRIVER)
    assert report.text.startswith("cpu passed; gpu simulated (stand-in-driver: ")
    with pytest.raises(GpuNotProvenError, match="wanted a kernel computed by a real GPU, found"):
        report.demand_gpu()


def test_a_proven_gpu_satisfies_the_demand() -> None:
    engine = Engine({"a": samples.finished(GOOD), "g": samples.finished(samples.REAL_GPU)})
    report = climb(engine, cpu("a"), gpu("g"))
    assert report.status is Status.PASSED
    report.demand_gpu()


def test_a_refused_gpu_is_not_run_and_its_container_is_removed() -> None:
    said = 'could not select device driver "" with capabilities: [[gpu]]'
    engine = Engine({}, start_answer=samples.finished(code=125, stderr=said), refused=said)
    report = climb(engine, gpu("g"), levels=(Level.GPU,))
    assert (report.status, report.cls) == (Status.NOT_RUN, Class.ENGINE_NO_GPU_SUPPORT)
    assert engine.told == []


def test_a_level_without_scripts_is_not_passed() -> None:
    engine = Engine({"a": samples.finished(GOOD)})
    report = climb(engine, cpu("a"))
    assert (report.status, report.cls) == (Status.NOT_RUN, Class.NO_CHECKS)
    assert climb(Engine({})).cls is Class.NO_CHECKS


def test_an_image_that_cannot_be_pulled_is_not_judged() -> None:
    engine = Engine({}, pull_error="cannot pull r:5/a/b: timeout")
    report = climb(engine, cpu("a"), gpu("g"))
    assert [x.cls for x in report.levels] == [Class.IMAGE_NOT_PULLED, Class.IMAGE_NOT_PULLED]
    assert report.status is Status.NOT_RUN
    assert "cannot pull r:5/a/b: timeout" in report.text


def test_an_interrupted_level_still_removes_its_container() -> None:
    engine = Engine({}, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        run(engine, SUBJECT, [cpu("a")])
    assert engine.removed == [engine.started[0].name]


def test_a_tag_is_refused() -> None:
    subject = replace(SUBJECT, image=ImageRef.parse("r:5/a/b:latest"))
    with pytest.raises(ContractError, match="wanted an image by digest"):
        run(Engine({}), subject, [])


@pytest.mark.parametrize(
    ("devices", "wanted"),
    [
        ((), ("--gpus=all",)),
        (("amd.com/gpu=all",), ("--gpus=all",)),
        (("nvidia.com/gpu=0", "nvidia.com/gpu=all"), ("--device=nvidia.com/gpu=all",)),
        (
            ("nvidia.com/gpu=0", "nvidia.com/gpu=1"),
            ("--device=nvidia.com/gpu=0", "--device=nvidia.com/gpu=1"),
        ),
    ],
    ids=["nothing", "another maker", "all", "no all"],
)
def test_gpus_are_asked_for_as_the_engine_can(
    devices: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    info = replace(samples.INFO, cdi_devices=devices)
    assert gpu_options(info, "nvidia.com/gpu") == wanted


@pytest.mark.parametrize(
    ("entrypoint", "front"),
    [
        (("/usr/bin/tini", "-g", "--", "python", "-m", "web"), ("/usr/bin/tini", "-g", "--")),
        (("/usr/bin/tini", "-g", "--"), ()),
        (("python", "-m", "web"), ()),
        ((), ()),
    ],
)
def test_scripts_run_under_what_runs_the_app_and_not_under_the_app(
    entrypoint: tuple[str, ...], front: tuple[str, ...]
) -> None:
    assert without_app(entrypoint) == front


class WithApp(Engine):
    def image_config(self, ref: ImageRef) -> ImageConfig:
        assert ref == IMAGE
        entrypoint = ("/usr/bin/tini", "-g", "--", "python", "-m", "web")
        return ImageConfig(env={}, entrypoint=entrypoint, user="10001:0")


def test_an_image_with_an_app_is_tried_without_starting_it() -> None:
    engine = WithApp({"one": samples.finished(GOOD)})
    run(engine, SUBJECT, [cpu("one")], options=Options(levels=(Level.CPU,)))
    (container,) = engine.started
    assert container.entrypoint == "/usr/bin/tini"
    assert container.command[:4] == ("-g", "--", "python", "-c")
