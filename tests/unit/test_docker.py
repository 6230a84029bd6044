from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
import smoke_samples as samples

from gpulayers.engine.docker import (
    ABSENT,
    Container,
    DockerEngine,
    parse_info,
    parse_state,
    start_arguments,
)
from gpulayers.engine.process import Finished
from gpulayers.errors import RemoteError, ToolError
from gpulayers.refs import ImageRef, Platform

IMAGE = ImageRef(registry="r:5", repository="a/b", digest=f"sha256:{'a' * 64}")
AMD64 = Platform("linux", "amd64")
# docker info of engine 28.5.2 with a CDI spec, shortened.
INFO = (
    '{"ServerVersion":"28.5.2","Runtimes":{"runc":{"path":"runc"},"nvidia":{"path":"x"}},'
    '"DiscoveredDevices":[{"Source":"cdi","ID":"nvidia.com/gpu=0"},'
    '{"Source":"cdi","ID":"nvidia.com/gpu=all"}],"CDISpecDirs":["/etc/cdi"]}'
)
CREATED = (
    '{"Status":"created","Running":false,"OOMKilled":false,"ExitCode":128,'
    '"Error":"CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all"}'
)


@dataclass
class Recorder:
    """Answers every call the same, and keeps what was called."""

    answer: Finished
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(
        self, argv: Sequence[str], *, stdin: str | None, timeout_s: float | None
    ) -> Finished:
        assert timeout_s
        self.calls.append((*argv, *([] if stdin is None else [f"<{stdin}"])))
        return self.answer


def engine(stdout: str = "", *, code: int = 0, stderr: str = "") -> tuple[DockerEngine, Recorder]:
    recorder = Recorder(samples.finished(stdout, code=code, stderr=stderr))
    return DockerEngine(recorder), recorder


def container(gpu: tuple[str, ...] = ()) -> Container:
    return Container(
        name="gpulayers-1",
        image=IMAGE,
        platform=AMD64,
        user="12345:0",
        env={"A": "1"},
        tmpfs=("/tmp",),
        gpu=gpu,
        command=("python", "-c", "0"),
    )


def test_an_engines_devices_and_runtimes_are_read() -> None:
    info = parse_info(INFO)
    assert info.version == "28.5.2"
    assert info.runtimes == {"runc", "nvidia"}
    assert info.cdi_devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert info.cdi_spec_dirs == ("/etc/cdi",)


def test_an_engine_that_lists_no_devices_has_none() -> None:
    info = parse_info('{"ServerVersion":"24.0.7","DiscoveredDevices":null}')
    assert info.cdi_devices == ()


def test_a_client_without_an_engine_is_told_with_its_reason() -> None:
    text = '{"ServerVersion":"","ServerErrors":["Cannot connect to the Docker daemon"]}'
    with pytest.raises(ToolError, match="found: Cannot connect to the Docker daemon"):
        parse_info(text)
    with pytest.raises(ToolError, match="wanted JSON, found 'oh'"):
        parse_info("oh")
    silent, _ = engine(code=1, stderr="permission denied")
    with pytest.raises(ToolError, match="found: permission denied"):
        silent.info()


def test_a_cdi_device_is_known_by_its_whole_kind() -> None:
    found, _ = engine(INFO)
    assert found.has_cdi_device("nvidia.com/gpu")
    assert not found.has_cdi_device("nvidia.com/g")


def test_the_state_of_a_refused_container_keeps_the_engines_sentence() -> None:
    state = parse_state(CREATED)
    assert (state.status, state.exit_code, state.oom_killed) == ("created", 128, False)
    assert state.error.startswith("CDI device injection failed")


def test_a_container_that_is_not_there_is_absent() -> None:
    assert parse_state("\n") == ABSENT


def test_containers_start_cut_off_and_without_privileges() -> None:
    arguments = start_arguments(container(gpu=("--gpus=all",)))
    for wanted in ("--network=none", "--read-only", "--cap-drop=ALL", "--pull=never",
                   "--security-opt=no-new-privileges", "--user=12345:0", "--env=A=1",
                   "--name=gpulayers-1", "--platform=linux/amd64"):  # fmt: skip
        assert wanted in arguments
    assert arguments[-5:] == ("--gpus=all", IMAGE.format(), "python", "-c", "0")
    assert "--rm" not in arguments


def test_another_entrypoint_stands_before_the_image() -> None:
    arguments = start_arguments(replace(container(), entrypoint="/usr/bin/tini"))
    assert "--entrypoint=/usr/bin/tini" in arguments[: arguments.index(IMAGE.format())]
    assert "--no-healthcheck" in arguments
    assert not any(word.startswith("--entrypoint") for word in start_arguments(container()))


def test_calls_name_the_container() -> None:
    found, recorder = engine(CREATED)
    found.start(container())
    found.execute("n", ("python", "-"), stdin="text", timeout_s=3.0)
    found.stop("n", grace_s=5)
    found.inspect("n")
    found.logs("n")
    found.remove("n")
    found.remove_image(IMAGE)
    assert [call[1:] for call in recorder.calls[1:]] == [
        ("exec", "-i", "n", "python", "-", "<text"),
        ("stop", "-t", "5", "n"),
        ("inspect", "--format", "{{json .State}}", "n"),
        ("logs", "--tail=20", "n"),
        ("rm", "--force", "--volumes", "n"),
        ("image", "rm", "--force", IMAGE.format()),
    ]


def test_a_failed_pull_says_what_the_registry_said() -> None:
    found, recorder = engine(code=1, stderr="manifest unknown")
    with pytest.raises(RemoteError, match=f"cannot pull {IMAGE.format()}: manifest unknown"):
        found.pull(IMAGE, AMD64)
    assert recorder.calls == [
        ("docker", "pull", "--quiet", "--platform=linux/amd64", IMAGE.format())
    ]


def test_the_version_of_buildx_is_read_with_and_without_a_v() -> None:
    debian, _ = engine("github.com/docker/buildx 0.29.1+ds1 0.29.1+ds1-4\n")
    upstream, _ = engine("github.com/docker/buildx v0.29.1 abc\n")
    assert debian.buildx_version() == "0.29.1+ds1"
    assert upstream.buildx_version() == "0.29.1"
    missing, _ = engine(code=1, stderr="docker: 'buildx' is not a docker command")
    with pytest.raises(ToolError, match="is not a docker command"):
        missing.buildx_version()
