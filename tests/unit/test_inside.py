"""The checks of a build in a container: in their order, and never taken for passed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import smoke_samples as samples
from lock_samples import first

from gpulayers.engine.docker import Container, ContainerState, EngineInfo, ImageConfig
from gpulayers.engine.process import Finished
from gpulayers.errors import ToolError
from gpulayers.inside import PASSED, Checks
from gpulayers.refs import ImageRef, Platform

REF = ImageRef.parse("127.0.0.1:5000/acme/gpu@sha256:" + "a" * 64)


IMAGE = first()


@dataclass
class Engine:
    """Answers a script's text from a table; keeps containers and those that were removed."""

    answers: dict[str, Finished]
    start_answer: Finished = field(default_factory=samples.finished)
    started: list[Container] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def info(self) -> EngineInfo:
        return samples.INFO

    def pull(self, ref: ImageRef, platform: Platform) -> None:
        assert (ref, platform) == (REF, IMAGE.platform)

    def image_config(self, ref: ImageRef) -> ImageConfig:
        assert ref == REF
        return ImageConfig(env={"HOME": "/home/app"}, entrypoint=("tini", "--", "x"), user="1:0")

    def start(self, container: Container) -> Finished:
        self.started.append(container)
        return self.start_answer

    def execute(self, name: str, argv: Sequence[str], *, stdin: str, timeout_s: float) -> Finished:
        assert name == self.started[0].name
        assert timeout_s
        assert '"module"' in argv[-1]
        self.asked.append(stdin)
        return self.answers[stdin]

    def stop(self, name: str, *, grace_s: int) -> Finished:
        raise NotImplementedError(name, grace_s)

    def inspect(self, name: str) -> ContainerState:
        raise NotImplementedError(name)

    def remove(self, name: str) -> None:
        self.removed.append(name)


def checks(engine: Engine) -> Checks:
    return Checks(engine=engine, scripts={"identity": "one", "duplicates": "two"})


def test_both_checks_are_asked_as_root_without_network_and_said_to_be_of_a_container() -> None:
    engine = Engine({"one": samples.finished(), "two": samples.finished()})
    found = checks(engine).judge(IMAGE, REF)
    assert {name: (gate.status, gate.text) for name, gate in found.items()} == {
        "identity": ("passed", PASSED),
        "duplicates": ("passed", PASSED),
    }
    (container,) = engine.started
    assert (container.user, container.capabilities) == ("0:0", ("DAC_READ_SEARCH",))
    assert (container.entrypoint, container.command[:2]) == ("tini", ("--", "/opt/venv/bin/python"))
    assert engine.removed == [container.name]


def test_the_first_that_fails_ends_it() -> None:
    said = samples.finished(code=1, stderr="identity: CUDA: wanted 12.6, installed is 12.8\nmore")
    engine = Engine({"one": said})
    found = checks(engine).judge(IMAGE, REF)
    assert list(found) == ["identity"]
    assert (found["identity"].status, found["identity"].cls) == ("failed", "identity-mismatch")
    assert found["identity"].text == "identity: CUDA: wanted 12.6, installed is 12.8"


@pytest.mark.parametrize("late", [True, False], ids=["late", "no-container"])
def test_what_came_to_no_end_is_no_outcome(late: bool) -> None:
    never = samples.finished(code=-9, timed_out=True)
    engine = Engine({"one": never})
    if not late:
        engine.start_answer = samples.finished(code=125, stderr="no space")
    with pytest.raises(ToolError, match="no end" if late else "no space"):
        checks(engine).judge(IMAGE, REF)
    assert engine.removed == [engine.started[0].name]
