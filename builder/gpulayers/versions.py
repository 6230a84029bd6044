"""Versions as people write them: CUDA's major.minor, Python's, a framework's exact pin."""

import re
from dataclasses import dataclass
from typing import Self

from packaging.version import InvalidVersion, Version

from gpulayers.errors import ProjectError

MINOR = re.compile(r"[1-9][0-9]*\.(0|[1-9][0-9]*)")
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
