"""Every error a user can cause, each with the exit code it ends the program with."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in one of the project's files.

    Shape: ``key`` is dotted (``axes.cuda``); ``line`` counts from 1 and is 0 where none is known;
    ``hint`` names the nearest known value or the next thing to do, or is empty.
    """

    file: str
    line: int
    key: str
    wanted: str
    found: str
    hint: str = ""

    def format(self) -> str:
        """One line: where, key, wanted, found, next."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{where}: {self.key}: wanted {self.wanted}, found {self.found}"
        return f"{text}; {self.hint}" if self.hint else text


class GpulayersError(Exception):
    """Root of all errors that are not bugs; ``hint`` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ProjectError(GpulayersError):
    """The project's files are wrong; carries every problem at once."""

    exit_code = 3

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  {p.format()}" for p in self.problems)])


class OptionError(GpulayersError):
    """An option of the command line names what is not there, or is not spelled as it has to be."""

    exit_code = 2


class NothingSelectedError(GpulayersError):
    """No cell is left to work on."""

    exit_code = 4


class ToolError(GpulayersError):
    """A tool is missing or too old, or there is too little disk."""

    exit_code = 5


class BuildError(GpulayersError):
    """A build step failed."""

    exit_code = 6


class ScanRejectedError(GpulayersError):
    """The policy rejected what a scan found."""

    exit_code = 7


class ContractError(GpulayersError):
    """A smoke, identity, secrets, duplicate-content or contract check failed."""

    exit_code = 8


class RemoteError(GpulayersError):
    """A registry, index or base cannot be reached, or a push or promotion failed."""

    exit_code = 9


class StaleError(GpulayersError):
    """A ``--check`` found a difference."""

    exit_code = 13


class ScanNotMadeError(GpulayersError):
    """The scan could not be made, and the policy does not accept that."""

    exit_code = 14


class GpuNotProvenError(GpulayersError):
    """A GPU was required and none was proven."""

    exit_code = 15


class BudgetError(GpulayersError):
    """An image or a layer is over its size budget."""

    exit_code = 16
