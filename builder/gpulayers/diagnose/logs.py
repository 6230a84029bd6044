"""Known errors in what programs print: each named once, causes before what follows from them."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from gpulayers.diagnose import mentions, patterns
from gpulayers.diagnose.patterns import Hit
from gpulayers.diagnose.text import bare, numbered, unescaped
from gpulayers.facts.model import KnownError

# Over so many lines one message may be broken.
WRAPPED_LINES = 3


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


class _Line(NamedTuple):
    """A line, and whether it is worth a look: alone, or with the beginning of the next one."""

    number: int
    text: str
    worth: bool


NOTHING = _Line(number=0, text="", worth=False)


def find(lines: Iterable[str]) -> tuple[Finding, ...]:
    """The known errors of a log: by their first lines, but a cause before what follows from it.

    Shape: where several patterns hit the same words of a line, the longest hit counts. A message
    that is broken over lines has the first of them.
    """
    found: dict[str, Finding] = {}
    last: dict[str, int] = {}
    for line, error in _told(_looked_at(numbered(lines))):
        seen = found.get(error.name)
        if last.get(error.name) != line.number:
            found[error.name] = Finding(
                error=error,
                line=seen.line if seen else line.number,
                text=seen.text if seen else line.text.strip(),
                count=seen.count + 1 if seen else 1,
            )
        last[error.name] = line.number
    return tuple(_causes_first(list(found.values())))


def _looked_at(lines: Iterable[tuple[int, str]]) -> Iterator[_Line]:
    """The lines, each with the look at it that most do not pass."""
    before: tuple[int, str] | None = None
    for number, text in lines:
        if before is not None:
            yield _look(*before, text)
        before = (number, text)
    if before is not None:
        yield _look(*before, "")


def _look(number: int, text: str, following: str) -> _Line:
    seam = f"{text.rstrip()} {bare(following)[: patterns.ANCHOR_CHARACTERS]}"
    worth = patterns.is_there(seam) or ("\\" in text and patterns.is_there(unescaped(text)))
    return _Line(number, text, worth)


def _told(lines: Iterable[_Line]) -> Iterator[tuple[_Line, KnownError]]:
    """What each line tells, alone or, where it tells nothing alone, with those after it."""
    window: deque[_Line] = deque()
    # How much of a line belongs to what one before it told.
    taken: dict[int, int] = {}
    for line in chain(lines, repeat(NOTHING, WRAPPED_LINES - 1)):
        window.append(line)
        if len(window) == WRAPPED_LINES:
            if any(each.worth for each in window):
                for error in _in_window(tuple(window), taken):
                    yield window[0], error
            window.popleft()


def _in_window(window: Sequence[_Line], taken: dict[int, int]) -> Iterator[KnownError]:
    first = window[0]
    skip = taken.pop(first.number, 0)
    if mentions.is_mention(first.text):
        return
    hits = [hit for hit in _alone(first.text) if hit.start >= skip] or _joined(window, taken)
    names = set()
    for hit in hits:
        if hit.error.name not in names:
            names.add(hit.error.name)
            yield hit.error


def _alone(text: str) -> Sequence[Hit]:
    text = mentions.without_requests(text)
    return tuple(patterns.hits(text)) or tuple(patterns.hits(unescaped(text)))


def _joined(window: Sequence[_Line], taken: dict[int, int]) -> Sequence[Hit]:
    """What a line tells only together with those after it; that part of them tells nothing more."""
    text = mentions.without_requests(window[0].text.rstrip())
    seam = len(text)
    # Where in the text each of the lines begins, had it what stands before its words.
    begins: dict[int, int] = {}
    for line in window[1:]:
        words = bare(line.text.rstrip())
        if not words or mentions.is_mention(line.text):
            break
        begins[line.number] = len(text) + 1 - (len(line.text.rstrip()) - len(words))
        text = f"{text} {mentions.without_requests(words)}"
        hits = [hit for hit in patterns.hits(text) if hit.start < seam < hit.end]
        if hits:
            end = max(hit.end for hit in hits)
            taken.update({number: end - begin for number, begin in begins.items()})
            return hits
    return ()


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
