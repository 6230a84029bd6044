"""The container engine: what it is and has, and containers run under a name that is always removed.

Exit codes of ``docker run`` do not tell an engine's refusal from a program's own status, so
containers are started apart from their checks, looked at by name, and removed by name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpulayers import statelock
from gpulayers.engine import process
from gpulayers.engine.process import Finished
from gpulayers.errors import RemoteError, ToolError
from gpulayers.refs import ImageRef, Platform

CALL_TIMEOUT_S = 60.0
PULL_TIMEOUT_S = 1800.0
# On every container of ours; its value is the image's digest.
LABEL = "io.gpulayers.smoke"
# Which process is to remove it.
OWNER = "io.gpulayers.owner"


class Runner(Protocol):
    """What starts a program: ``process.run``, or in tests what was recorded of it."""

    def __call__(
        self, argv: Sequence[str], *, stdin: str | None, timeout_s: float | None
    ) -> Finished:
        """Run to the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an engine says of itself.

    Shape: ``runtimes`` are names (``runc``, ``nvidia``); ``cdi_devices`` are whole CDI names
    (``nvidia.com/gpu=all``), empty before engine 28.2, which does not list them.
    """

    version: str
    runtimes: frozenset[str]
    cdi_devices: tuple[str, ...]
    cdi_spec_dirs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """How an image's containers start when nothing else is said."""

    env: Mapping[str, str]
    entrypoint: tuple[str, ...]
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container to start in the background, cut off from the network, without privileges.

    Shape: ``tmpfs`` are folders that are writable; each keeps the mode that the image gave it.
    ``gpu`` are the options that ask for GPUs, or empty. ``entrypoint`` is a program in the place of
    the image's own, with ``command`` as its words; "" leaves the image's. ``capabilities`` are
    those that root keeps.
    """

    name: str
    image: ImageRef
    platform: Platform
    user: str
    env: Mapping[str, str]
    tmpfs: tuple[str, ...]
    gpu: tuple[str, ...]
    command: tuple[str, ...]
    entrypoint: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """What the engine knows of a container.

    Shape: ``status`` is Docker's word (``created``: it never started; ``running``, ``exited``) or
    ``absent``; ``error`` is the engine's own sentence about a start that it refused.
    """

    status: str
    exit_code: int
    oom_killed: bool
    error: str


ABSENT = ContainerState(status="absent", exit_code=0, oom_killed=False, error="")


def _run(argv: Sequence[str], *, stdin: str | None, timeout_s: float | None) -> Finished:
    return process.run(argv, stdin=stdin, timeout_s=timeout_s)


def _object(value: object) -> dict[str, object]:
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def parse_info(text: str) -> EngineInfo:
    """Read the answer of ``docker info --format '{{json .}}'``.

    Raises: ToolError: it is not JSON, or names no server version (the engine did not answer).
    """
    try:
        answer = _object(json.loads(text))
    except ValueError as error:
        msg = f"docker info: wanted JSON, found {text[:80]!r}"
        raise ToolError(msg, hint="`docker info` by hand shows what is wrong") from error
    version = answer.get("ServerVersion")
    if not isinstance(version, str) or not version:
        said = " ".join(_texts(answer.get("ServerErrors"))) or "no server version"
        msg = f"docker info: wanted a running engine, found: {said}"
        raise ToolError(msg, hint="start the engine, or set DOCKER_HOST to where it listens")
    devices = answer.get("DiscoveredDevices")
    found = [_object(item) for item in devices] if isinstance(devices, list) else []
    return EngineInfo(
        version=version,
        runtimes=frozenset(_object(answer.get("Runtimes"))),
        cdi_devices=tuple(str(d.get("ID", "")) for d in found if d.get("Source") == "cdi"),
        cdi_spec_dirs=_texts(answer.get("CDISpecDirs")),
    )


def parse_state(text: str) -> ContainerState:
    """Read the answer of ``docker inspect --format '{{json .State}}'``; not JSON: absent."""
    try:
        state = _object(json.loads(text))
    except ValueError:
        return ABSENT
    code = state.get("ExitCode")
    return ContainerState(
        status=str(state.get("Status", ABSENT.status)),
        exit_code=code if isinstance(code, int) else 0,
        oom_killed=state.get("OOMKilled") is True,
        error=str(state.get("Error", "")),
    )


def start_arguments(container: Container) -> tuple[str, ...]:
    """The options and operands of ``docker run`` for a container."""
    env = (f"--env={name}={value}" for name, value in container.env.items())
    # exec: compilers for the GPU write libraries into HOME and load them from there.
    tmpfs = (f"--tmpfs={path}:rw,exec,nosuid,nodev" for path in container.tmpfs)
    return (
        *("--detach", f"--name={container.name}", "--pull=never"),
        *(f"--platform={container.platform.format()}", f"--user={container.user}"),
        *(f"--cap-add={name}" for name in container.capabilities),
        *("--network=none", "--read-only", "--cap-drop=ALL", "--no-healthcheck"),
        *("--security-opt=no-new-privileges", f"--label={LABEL}={container.image.digest}"),
        f"--label={OWNER}={statelock.owner()}",
        *tmpfs,
        *env,
        *container.gpu,
        *((f"--entrypoint={container.entrypoint}",) if container.entrypoint else ()),
        container.image.format(),
        *container.command,
    )


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """The engine that the ``docker`` client of this environment talks to."""

    runner: Runner = _run

    def _docker(
        self, *argv: str, stdin: str | None = None, timeout_s: float = CALL_TIMEOUT_S
    ) -> Finished:
        return self.runner(("docker", *argv), stdin=stdin, timeout_s=timeout_s)

    def info(self) -> EngineInfo:
        """What the engine says of itself.

        Raises: ToolError: there is no client, or no engine answers it.
        """
        answer = self._docker("info", "--format", "{{json .}}")
        if not answer.stdout.strip():
            msg = f"docker info: wanted an answer, found: {' '.join(answer.tail(3))}"
            raise ToolError(msg, hint="start the engine, or set DOCKER_HOST to where it listens")
        return parse_info(answer.stdout)

    def buildx_version(self) -> str:
        """The version of the buildx plugin (``0.29.1``).

        Raises: ToolError: the client has no such plugin.
        """
        answer = self._docker("buildx", "version")
        words = answer.stdout.split()
        if not answer.ok or len(words) < 2:  # noqa: PLR2004 - module, then version
            msg = f"docker buildx version: wanted a version, found: {' '.join(answer.tail(2))}"
            raise ToolError(msg, hint="install the buildx plugin (docker-buildx)")
        return words[1].removeprefix("v")

    def has_cdi_device(self, kind: str) -> bool:
        """Whether the engine knows any CDI device of a kind (``nvidia.com/gpu``)."""
        return any(name.startswith(f"{kind}=") for name in self.info().cdi_devices)

    def pull(self, ref: ImageRef, platform: Platform, *, timeout_s: float = PULL_TIMEOUT_S) -> None:
        """Bring an image to the engine.

        Raises: RemoteError: the registry did not give it, or not in time.
        """
        wanted = ("pull", "--quiet", f"--platform={platform.format()}", ref.format())
        answer = self._docker(*wanted, timeout_s=timeout_s)
        if not answer.ok:
            late = f"no end after {timeout_s:.0f} s; " if answer.timed_out else ""
            msg = f"cannot pull {ref.format()}: {late}{' '.join(answer.tail(3))}"
            raise RemoteError(msg, hint="`docker pull` by hand shows whether the registry answers")

    def image_config(self, ref: ImageRef) -> ImageConfig:
        """How containers of an image that is there start.

        Raises: ToolError: the engine has no such image.
        """
        from python_on_whales import DockerClient, exceptions  # noqa: PLC0415 - takes 0.7 s

        try:
            config = DockerClient().image.inspect(ref.format()).config
        except exceptions.DockerException as error:
            msg = f"{ref.format()} is not on this engine"
            raise ToolError(msg, hint="pull it first") from error
        pairs = (entry.partition("=") for entry in config.env or ())
        return ImageConfig(
            env={name: value for name, _, value in pairs},
            entrypoint=tuple(config.entrypoint or ()),
            user=config.user or "",
        )

    def image_id(self, name: str) -> str:
        """The id (``sha256:…``) of an image that the engine has, by any name; "" for none."""
        answer = self._docker("image", "inspect", "--format={{.Id}}", name)
        return answer.stdout.strip() if answer.ok else ""

    def save(self, name: str, file: Path) -> None:
        """Write an image that the engine has to a file, as ``docker load`` reads it.

        Raises: RemoteError: the engine did not.
        """
        answer = self._docker("save", f"--output={file}", name, timeout_s=PULL_TIMEOUT_S)
        if not answer.ok:
            msg = f"docker save {name}: {' '.join(answer.tail(3))}"
            raise RemoteError(msg, hint="look at the disk, and at the engine's log")

    def start(self, container: Container) -> Finished:
        """Start a container in the background; ``inspect`` says what became of it."""
        return self._docker("run", *start_arguments(container))

    def execute(self, name: str, argv: Sequence[str], *, stdin: str, timeout_s: float) -> Finished:
        """Run a program in a running container with text on its standard input.

        Out of time, only the client ends: the program goes on until the container is removed.
        """
        return self._docker("exec", "-i", name, *argv, stdin=stdin, timeout_s=timeout_s)

    def stop(self, name: str, *, grace_s: int) -> Finished:
        """SIGTERM to a container's first process, SIGKILL after the grace time."""
        return self._docker("stop", "-t", str(grace_s), name)

    def inspect(self, name: str) -> ContainerState:
        """What became of a container."""
        return parse_state(self._docker("inspect", "--format", "{{json .State}}", name).stdout)

    def logs(self, name: str) -> tuple[str, ...]:
        """The last lines that a container's first process said."""
        return self._docker("logs", "--tail=20", name).tail()

    def remove(self, name: str) -> None:
        """End and remove a container, even while all is being stopped; none is fine."""
        with process.tidying():
            self._docker("rm", "--force", "--volumes", name)

    def remove_orphans(self) -> None:
        """Remove containers of smoke tests whose process was killed."""
        form = f'--format={{{{.ID}}}} {{{{.Label "{OWNER}"}}}}'
        listed = self._docker("ps", "--all", "--no-trunc", f"--filter=label={OWNER}", form)
        for line in listed.stdout.splitlines() if listed.ok else ():
            name, _, owner = line.partition(" ")
            if statelock.is_gone(owner.strip()):
                self.remove(name)

    def digests_of(self, repository: str) -> frozenset[str]:
        """The digests that the engine holds of a repository (``HOST/PATH``)."""
        form = "--format={{.Digest}}"
        answer = self._docker("images", "--digests", "--no-trunc", form, repository)
        return frozenset(word for word in answer.stdout.split() if word.startswith("sha256:"))

    def remove_image(self, ref: ImageRef) -> None:
        """Let the engine forget an image; none of that name is fine."""
        self._docker("image", "rm", "--force", ref.format())

    def image_size(self, ref: ImageRef) -> int:
        """Unpacked bytes of an image that is there; 0 where the engine does not say."""
        said = self._docker("image", "inspect", "--format={{.Size}}", ref.format()).stdout.strip()
        return int(said) if said.isdigit() else 0

    def forget(self, ref: ImageRef) -> str:
        """Let the engine forget an image that no container uses; "" or why it stays."""
        answer = self._docker("image", "rm", ref.format(), timeout_s=PULL_TIMEOUT_S)
        return "" if answer.ok else " ".join(answer.tail(1))
