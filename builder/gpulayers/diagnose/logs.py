"""Known errors in what programs print: each named once, causes before what follows from them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from gpulayers.facts.load import load_errors
from gpulayers.facts.model import KnownError

# Colours and cursor movements of terminals.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
# A line of a progress bar or a dump may be endless; no message is that long.
MOST = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A known error in a log.

    Shape: ``line`` is where it is first seen, counted from 1, ``text`` that line; ``count`` is how
    many lines tell of it.
    """

    error: KnownError
    line: int
    text: str
    count: int


def find(lines: Iterable[str]) -> tuple[Finding, ...]:
    """The known errors of a log: by their first lines, but a cause before what follows from it.

    Shape: where several patterns hit the same words of a line, the longest hit counts.
    """
    found: dict[str, Finding] = {}
    for number, line in enumerate(_lines(lines), 1):
        for error in _in_line(line):
            seen = found.get(error.name)
            found[error.name] = (
                Finding(error=error, line=number, text=line.strip(), count=1)
                if seen is None
                else Finding(error=error, line=seen.line, text=seen.text, count=seen.count + 1)
            )
    return tuple(_causes_first(list(found.values())))


def _lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for part in CONTROL.sub("", line).replace("\r", "\n").splitlines() or [""]:
            yield part[:MOST]


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], KnownError], ...]:
    return tuple((re.compile(text), error) for error in load_errors() for text in error.match)


@cache
def _quick() -> re.Pattern[str]:
    """One pattern of all: most lines of a log tell of nothing."""
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in _patterns()))


def _in_line(line: str) -> Iterator[KnownError]:
    """The errors of a line, in the order of their words; of hits that overlap the longest."""
    if _quick().search(line) is None:
        return
    hits = [
        (match.start(), match.end(), error)
        for pattern, error in _patterns()
        if (match := pattern.search(line)) is not None
    ]
    kept: list[tuple[int, int, KnownError]] = []
    for start, end, error in sorted(hits, key=lambda hit: hit[0] - hit[1]):
        if all(end <= other[0] or start >= other[1] for other in kept):
            kept.append((start, end, error))
    names = set()
    for _, _, error in sorted(kept, key=lambda hit: hit[:2]):
        if error.name not in names:
            names.add(error.name)
            yield error


def _causes_first(found: Sequence[Finding]) -> Iterator[Finding]:
    """In the order of the log, but what follows from others after them."""
    waiting = list(found)
    while waiting:
        names = {each.error.name for each in waiting}
        free = [each for each in waiting if not _causes(each, names)]
        first = (free or waiting)[0]
        waiting.remove(first)
        yield first


def _causes(finding: Finding, there: set[str]) -> set[str]:
    others = there - {finding.error.name}
    return others if "*" in finding.error.after else others & set(finding.error.after)
