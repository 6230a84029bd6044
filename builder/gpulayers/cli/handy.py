"""`gpulayers run` and `gpulayers shell`: an image, at once, with what it needs."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from gpulayers import launch
from gpulayers.cli.known import hints
from gpulayers.cli.named import image_of
from gpulayers.cli.options import where
from gpulayers.engine import attached
from gpulayers.engine.docker import DockerEngine, EngineInfo
from gpulayers.engine.registry import Registry

KEPT_BYTES = 1 << 18
P = ParamSpec("P")
R = TypeVar("R")


class Tail:
    """Standard error of a program, handed on as it comes, and the last of it kept."""

    def __init__(self) -> None:
        self._kept = b""

    def take(self, piece: bytes) -> None:
        """Hand on a piece."""
        self._kept = (self._kept + piece)[-KEPT_BYTES:]
        try:
            sys.stderr.buffer.write(piece)
            sys.stderr.buffer.flush()
        except OSError:
            pass  # nobody reads it any more: the program goes on all the same

    def lines(self) -> list[str]:
        """What was kept."""
        return self._kept.decode("utf-8", errors="replace").splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options of ``run`` and ``shell`` say."""

    image: str
    project: Path | None
    matrix: str | None
    registry: str
    wish: launch.Wish
    gpu: str
    dry_run: bool


def image_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--project``, ``--matrix`` and ``--registry``, for commands that name one image."""
    for option in (
        click.option(
            "--registry", default="", metavar="HOST/PATH", help="Look for the cell's image there."
        ),
        click.option(
            "--matrix", is_flag=False, flag_value=".", metavar="[FILE]", help="Whose cells to know."
        ),
        click.option(
            "--project",
            type=click.Path(file_okay=False, path_type=Path),
            help="The project's folder (default: the nearest parent with a matrix.toml).",
        ),
    ):
        command = option(command)
    return command


def launch_options(command: Callable[P, R]) -> Callable[P, R]:
    """Options of both commands, in Docker's own words where it has them."""
    for option in reversed(
        [
            click.option("--user", "-u", default="", metavar="UID[:GID]", help="Run as this user."),
            click.option("--network", default="", help="Docker's network (default: the engine's)."),
            click.option(
                "--volume", "-v", metavar="FROM:TO[:ro]", help="Repeatable.", multiple=True
            ),
            click.option("--port", "-p", metavar="[IP:]OUR:ITS", help="Repeatable.", multiple=True),
            click.option(
                "--env",
                "-e",
                metavar="NAME[=VALUE]",
                help="Set, or hand on from here; never shown. Repeatable.",
                multiple=True,
            ),
            click.option("--workdir", "-w", default="", help="The folder to start in."),
            click.option(
                "--shm-size",
                default="1g",
                show_default=True,
                help="Shared memory, which data loaders use.",
            ),
            click.option(
                "--gpu",
                type=click.Choice(["auto", "require", "none"]),
                default="auto",
                show_default=True,
                help="All GPUs where the engine has any, or exit 15 without, or none.",
            ),
            click.option("--dry-run", is_flag=True, help="Print the docker command instead."),
        ]
    ):
        command = option(command)
    return command


@click.command("run", short_help="Run an image, with the GPU where there is one.")
@image_options
@launch_options
@click.option("--entrypoint", default="", help="Another entrypoint than the image's.")
@click.argument("image", metavar="REF|CELL")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD…]")
def run_command(image: str, command: tuple[str, ...], **options: object) -> None:
    """Run an image by digest, and end with its exit code.

    REF is an image's name in a registry or on this engine; CELL is AXIS=VALUE[,AXIS=VALUE…] or a
    tag that `gpulayers list` shows.
    """
    sys.exit(_launch(_asked(image, command, options)))


@click.command("shell", short_help="A shell in an image.")
@image_options
@launch_options
@click.argument("image", metavar="REF|CELL")
def shell_command(image: str, **options: object) -> None:
    """Open a shell (bash, or sh where there is no bash) in an image, with the options of `run`."""
    sys.exit(_launch(_asked(image, (), options), change=launch.shell))


def _asked(image: str, command: tuple[str, ...], options: dict[str, object]) -> Asked:
    project, matrix = options["project"], options["matrix"]
    wish = launch.Wish(
        user=str(options["user"]),
        network=str(options["network"]),
        workdir=str(options["workdir"]),
        entrypoint=str(options.get("entrypoint", "")),
        shm_size=str(options["shm_size"]),
        volumes=_texts(options["volume"]),
        ports=_texts(options["port"]),
        env=launch.parse_env(_texts(options["env"]), os.environ),
        command=command,
    )
    return Asked(
        image=image,
        project=project if isinstance(project, Path) else None,
        matrix=matrix if isinstance(matrix, str) else None,
        registry=str(options["registry"]),
        wish=wish,
        gpu=str(options["gpu"]),
        dry_run=bool(options["dry_run"]),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, tuple) else ()


def _launch(asked: Asked, change: Callable[[launch.Wish], launch.Wish] = lambda wish: wish) -> int:
    engine, wish = DockerEngine(), change(asked.wish)
    info = engine.info()
    with Registry() as registry:
        place = where(asked.project, asked.matrix, (), asked.registry)
        named = image_of(asked.image, place, registry, engine)
    gpu = _gpu(info, asked.gpu)
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    argv = launch.arguments(named.runnable, wish, gpu=gpu, interactive=interactive)
    if asked.dry_run:
        shown = [word.replace(attached.HANDED, "FILE") for word in argv]
        click.echo(shlex.join(shown))
        return 0
    if interactive:  # a person sees both streams as one, and can ask `diagnose`
        return attached.attach(argv, handed=launch.handed(wish))
    told = Tail()
    code = attached.attach(argv, handed=launch.handed(wish), on_error=told.take)
    for hint in hints(told.lines()) if code else ():
        click.echo(hint, err=True)
    return code


def _gpu(info: EngineInfo, wanted: str) -> tuple[str, ...]:
    if wanted == "none":
        return ()
    found = launch.gpus(info)
    if not found:
        missing = launch.no_gpu(info)
        if wanted == "require":
            raise missing
        click.echo(f"warning: {missing}; running without one ({missing.hint})", err=True)
    return found
