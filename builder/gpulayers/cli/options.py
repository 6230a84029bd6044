"""Options that many commands share, as cli.md of the project spells them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from gpulayers.cli.loaded import Where
from gpulayers.errors import ProjectError
from gpulayers.facts import find
from gpulayers.facts.model import Facts
from gpulayers.inputs import given as secrets
from gpulayers.inputs import machine_environment
from gpulayers.inputs.given import WANTED, Given

P = ParamSpec("P")
R = TypeVar("R")
OWN_MATRIX = "."


def where_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--project``, ``--matrix``, ``--only`` and ``--registry``."""
    for option in reversed(
        [
            click.option(
                "--project",
                type=click.Path(file_okay=False, path_type=Path),
                help="The project's folder (default: the nearest parent with a matrix.toml).",
            ),
            click.option(
                "--matrix",
                is_flag=False,
                flag_value=OWN_MATRIX,
                metavar="[FILE]",
                help="The matrix to read (default, and without FILE: the project's own).",
            ),
            click.option(
                "--only",
                multiple=True,
                metavar="AXIS=GLOB",
                help="Only cells that match; repeatable, commas for alternatives.",
            ),
            click.option(
                "--registry",
                default="",
                metavar="HOST/PATH",
                help="Another registry than that of matrix.toml.",
            ),
        ]
    ):
        command = option(command)
    return command


def secret_option(command: Callable[P, R]) -> Callable[P, R]:
    """``--secret``, read and hidden before anything else happens, as the parameter ``given``."""
    return click.option(
        "--secret",
        "given",
        multiple=True,
        metavar="id=NAME,env=VARIABLE|src=FILE",
        callback=_given,
        help="A secret that a layer asks for; repeatable.",
    )(command)


def _given(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Given, ...]:
    try:
        found = tuple(map(secrets.parse, texts))
    except (ValueError, csv.Error) as error:
        msg = str(error) if isinstance(error, ValueError) else f"wanted {WANTED}"
        raise click.BadParameter(msg, ctx=context, param=parameter) from None
    secrets.read(found, machine_environment())
    return found


def usage_error(error: ProjectError) -> click.UsageError:
    """What is wrong with words of the command line, with what to do."""
    return click.UsageError(f"{error}; {error.hint}" if error.hint else str(error))


def known_host(facts: Facts, driver: str, gpus: tuple[str, ...]) -> None:
    """See that a driver and GPUs are known.

    Raises: click.UsageError: one of them is not.
    """
    try:
        find.driver(facts, driver)
        for gpu in gpus:
            find.gpu(facts, gpu)
    except find.FactError as error:
        raise usage_error(error) from error


def where(project: Path | None, matrix: str | None, only: tuple[str, ...], registry: str) -> Where:
    """The options as one value."""
    file = Path(matrix) if matrix not in {None, OWN_MATRIX} and matrix is not None else None
    return Where(project=project, matrix=file, only=only, registry=registry.rstrip("/"))
