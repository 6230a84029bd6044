"""Queries from the words that people write."""

import re
from collections.abc import Callable, Mapping, Sequence

from gpulayers.compat.model import AMD64, PLAIN_CUDA, Query, ToolkitMode
from gpulayers.errors import ProjectError
from gpulayers.facts import find
from gpulayers.facts.convert import RowError, pair
from gpulayers.facts.model import ComputeCapability, Facts
from gpulayers.refs import Platform, RefError
from gpulayers.versions import MajorMinor, Pin, VersionError

Words = Mapping[str, str | Sequence[str]]
PYTHON = re.compile(r"3\.[0-9]{1,2}t?", re.ASCII)
VARIANT = re.compile(r"cu[0-9]{2,3}|cpu|pypi|", re.ASCII)
MODES: Mapping[str, ToolkitMode | None] = {
    "": None,
    "legacy": "legacy",
    "cdi": "cdi",
    "jit-cdi": "jit-cdi",
}


class QueryError(ProjectError):
    """Words that make no query; tells all that is wrong with them at once."""


def parse(words: Words, facts: Facts) -> Query:
    """Read a query; the keys are the flags of ``why`` without their dashes.

    Raises: QueryError: with everything that is wrong.
    """
    reader = _Reader(words, facts)
    query = Query(
        framework=reader.pin("framework"),
        variant=reader.matching("variant", VARIANT, "cu128, cu12, cpu or pypi"),
        cuda=reader.release("cuda"),
        gpu=reader.known("gpu", find.gpu),
        driver=reader.known("driver", find.driver),
        python=reader.matching("python", re.compile(f"{PYTHON.pattern}|"), "3.12 or 3.13t"),
        os=reader.text("os"),
        platform=reader.platform(),
        packages=reader.pins("with"),
        base=reader.text("base"),
        toolkit_mode=reader.mode(),
        sms=reader.capabilities("sm"),
        ptx=reader.capabilities("ptx"),
    )
    if query.variant and query.cuda is not None:
        reader.wrong.append("variant and cuda: wanted one of them, found both")
    if (query.sms or query.ptx) and query.framework.name != PLAIN_CUDA:
        reader.wrong.append("sm and ptx: wanted only with cuda==X.Y.Z, a program of your own")
    if reader.wrong:
        raise QueryError("\n".join(reader.wrong), hint=reader.hint)
    return query


class _Reader:
    """Takes words one by one, and notes what is wrong with them."""

    def __init__(self, words: Words, facts: Facts) -> None:
        self.words, self.facts = words, facts
        self.wrong: list[str] = []
        self.hint = ""

    def text(self, key: str) -> str:
        value = self.words.get(key, "")
        return value.strip() if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.words.get(key, ())
        return (value,) if isinstance(value, str) else tuple(value)

    def pin(self, key: str) -> Pin:
        return self._pin(key, self.text(key))

    def pins(self, key: str) -> tuple[Pin, ...]:
        return tuple(self._pin(key, text) for text in self.texts(key))

    def _pin(self, key: str, text: str) -> Pin:
        try:
            return Pin.parse(text)
        except VersionError as error:
            self.wrong.append(f"{key}: {error}")
            return Pin("", "")

    def matching(self, key: str, pattern: re.Pattern[str], wanted: str) -> str:
        text = self.text(key)
        if pattern.fullmatch(text) is None:
            self.wrong.append(f"{key}: wanted {wanted}, found {text!r}")
        return text

    def release(self, key: str) -> MajorMinor | None:
        text = self.text(key)
        try:
            return MajorMinor.parse(text) if text else None
        except VersionError as error:
            self.wrong.append(f"{key}: {error}")
            return None

    def known(self, key: str, finder: Callable[[Facts, str], object]) -> str:
        text = self.text(key)
        try:
            finder(self.facts, text)
        except find.FactError as error:
            self.wrong.append(f"{key}: {error}")
            self.hint = self.hint or error.hint
        return text

    def platform(self) -> Platform:
        text = self.text("platform")
        try:
            return Platform.parse(text) if text else AMD64
        except RefError as error:
            self.wrong.append(f"platform: {error}")
            return AMD64

    def mode(self) -> ToolkitMode | None:
        text = self.text("toolkit-mode")
        if text not in MODES:
            known = ", ".join(word for word in MODES if word)
            self.wrong.append(f"toolkit-mode: wanted one of {known}, found {text!r}")
        return MODES.get(text)

    def capabilities(self, key: str) -> frozenset[ComputeCapability]:
        found = set()
        for text in self.texts(key):
            try:
                found.add(pair(text))
            except RowError as error:
                self.wrong.append(f"{key}: {error}")
        return frozenset(found)
