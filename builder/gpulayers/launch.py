"""Containers for a person: how `docker run` is asked, with the GPU where there is one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpulayers.engine.attached import HANDED
from gpulayers.engine.docker import EngineInfo
from gpulayers.errors import GpuNotProvenError, ProjectError
from gpulayers.smoke.run import CDI_KIND, gpu_options

RUNTIME = "nvidia"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
SHELL = "command -v bash >/dev/null 2>&1 && exec bash; exec sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a container is to run; empty texts mean the engine's or the image's own choice.

    Shape: ``volumes`` and ``ports`` are spelled as Docker spells them; ``env`` is never shown;
    ``command`` empty runs the image's own.
    """

    user: str = ""
    network: str = ""
    workdir: str = ""
    entrypoint: str = ""
    shm_size: str = "1g"
    volumes: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()


def shell(wish: Wish) -> Wish:
    """The same, with an interactive shell in the place of what the image runs."""
    return Wish(
        user=wish.user,
        network=wish.network,
        workdir=wish.workdir,
        entrypoint="sh",
        shm_size=wish.shm_size,
        volumes=wish.volumes,
        ports=wish.ports,
        env=wish.env,
        command=("-c", SHELL),
    )


def gpus(info: EngineInfo) -> tuple[str, ...]:
    """The options that ask this engine for its GPUs; empty where it can give none."""
    if RUNTIME in info.runtimes or any(n.startswith(f"{CDI_KIND}=") for n in info.cdi_devices):
        return gpu_options(info, CDI_KIND)
    return ()


def no_gpu(info: EngineInfo) -> GpuNotProvenError:
    """Why this engine can give no GPU, and what to do about it."""
    msg = (
        f"no GPU: wanted a CDI device {CDI_KIND} or the runtime {RUNTIME}, the engine has "
        f"{len(info.cdi_devices)} CDI devices and the runtimes {', '.join(sorted(info.runtimes))}"
    )
    return GpuNotProvenError(msg, hint="gpulayers doctor says what the engine lacks")


def parse_env(words: tuple[str, ...], ours: Mapping[str, str]) -> dict[str, str]:
    """Read ``NAME=VALUE``, and ``NAME`` for a variable of our own environment.

    Raises: ProjectError: no such name, or a value that Docker cannot take; no value is named.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not NAME.fullmatch(name):
            msg = "--env: wanted NAME or NAME=VALUE, found another name"
            raise ProjectError(msg, hint="a name has letters, digits and underscores")
        if not equals and name not in ours:
            msg = f"--env {name}: wanted a variable of this environment, found none"
            raise ProjectError(msg, hint=f"export it, or write --env {name}=VALUE")
        found[name] = value if equals else ours[name]
        if set(found[name]) & {"\n", "\r", "\0"}:
            msg = f"--env {name}: wanted a value of one line, found several"
            raise ProjectError(
                msg, hint="put it into a file, and that into the image with --volume"
            )
    return found


def arguments(
    image: str, wish: Wish, *, gpu: tuple[str, ...], interactive: bool
) -> tuple[str, ...]:
    """The whole command line; it holds no value of ``env``, which goes through ``HANDED``.

    Shape: ``interactive`` is whether both our streams are a terminal.
    """
    single = {
        "user": wish.user,
        "network": wish.network,
        "workdir": wish.workdir,
        "entrypoint": wish.entrypoint,
        "shm-size": wish.shm_size,
        "env-file": HANDED if wish.env else "",
    }
    return (
        *("docker", "run", "--rm", "--interactive"),
        *(("--tty",) if interactive else ()),
        *(f"--{name}={value}" for name, value in single.items() if value),
        *(f"--volume={volume}" for volume in wish.volumes),
        *(f"--publish={port}" for port in wish.ports),
        *gpu,
        image,
        *wish.command,
    )


def handed(wish: Wish) -> str:
    """The text that ``HANDED`` stands for: one assignment a line."""
    return "".join(f"{name}={value}\n" for name, value in wish.env.items())
