"""Versions as people write them: CUDA's major.minor, Python's, a framework's exact pin."""

import re
from dataclasses import dataclass, field
from typing import Self

from packaging.version import InvalidVersion, Version

from gpulayers.errors import ProjectError

MINOR = re.compile(r"[1-9][0-9]*\.(0|[1-9][0-9]*)")
DOTTED = re.compile(r"[0-9]+(\.[0-9]+)*", re.ASCII)
PACKAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class VersionError(ProjectError):
    """A text is not the kind of version that is wanted."""


@dataclass(frozen=True, slots=True, order=True)
class MajorMinor:
    """A release line: CUDA ``12.8``, Python ``3.12``. Ordered as numbers, so 12.10 > 12.8."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``MAJOR.MINOR``.

        Raises: VersionError: anything else, a patch number included.
        """
        if MINOR.fullmatch(text) is None:
            msg = f"{text!r} is not MAJOR.MINOR"
            raise VersionError(msg)
        major, minor = text.split(".")
        return cls(int(major), int(minor))

    def format(self) -> str:
        """``MAJOR.MINOR``."""
        return f"{self.major}.{self.minor}"

    @property
    def compact(self) -> str:
        """The two numbers without the dot, as in ``cu128`` or ``cp312``."""
        return f"{self.major}{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """A package at one exact version: ``torch==2.8.0``."""

    name: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``NAME==VERSION``; the name is lower case with dashes, the version PEP 440.

        Raises: VersionError: anything else, ranges included.
        """
        name, equals, version = text.partition("==")
        if not equals or PACKAGE.fullmatch(name) is None:
            msg = f"{text!r} is not NAME==VERSION"
            raise VersionError(msg)
        try:
            Version(version if version == version.strip() else "")  # it forgives blanks, we do not
        except InvalidVersion as error:
            msg = f"{text!r}: {version!r} is not a PEP 440 version"
            raise VersionError(msg) from error
        return cls(name, version)

    def format(self) -> str:
        """``NAME==VERSION``."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, order=True)
class Dotted:
    """A version of dotted numbers, compared number by number: a driver, a toolkit, cuDNN.

    Shape: ``570.26`` < ``570.124.06``; ``535`` < ``535.0``; leading zeros do not count, and are
    kept in the text.
    """

    numbers: tuple[int, ...]
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``N[.N]…``.

        Raises: VersionError: anything else.
        """
        if DOTTED.fullmatch(text) is None:
            msg = f"{text!r} is not a version of numbers and dots"
            raise VersionError(msg)
        return cls(tuple(int(part) for part in text.split(".")), text)

    def format(self) -> str:
        """The version as it was written."""
        return self.text

    @property
    def release(self) -> MajorMinor:
        """The first two numbers, such as CUDA's 12.8 of 12.8.1.

        Raises: VersionError: there is only one.
        """
        if len(self.numbers) == 1:
            msg = f"{self.text} has no minor version"
            raise VersionError(msg)
        return MajorMinor(self.numbers[0], self.numbers[1])
