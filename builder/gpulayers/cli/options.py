"""Options that many commands share, as cli.md of the project spells them."""

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from gpulayers.cli.loaded import Where

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


def where(project: Path | None, matrix: str | None, only: tuple[str, ...], registry: str) -> Where:
    """The options as one value."""
    file = Path(matrix) if matrix not in {None, OWN_MATRIX} and matrix is not None else None
    return Where(project=project, matrix=file, only=only, registry=registry.rstrip("/"))
