"""Patterns of known errors, and one quick look that tells lines without any of them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from gpulayers.facts.load import load_errors
from gpulayers.facts.model import KnownError

# An anchor is no longer than that: two lines are joined over so many characters to look for one.
ANCHOR_CHARACTERS = 20
# What a pattern is read by: an escape, a set, a repetition, or one character.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\{[\d,]*\}|.", re.DOTALL)
_SPECIAL = frozenset(".^$")
# Characters of logs, the most frequent first: an anchor begins with one that is not, for speed.
_FREQUENT = " e0123456789taoinsrldcumhpfgy-_:.,/"
_LEAST_CHARACTERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where a pattern of an error is in a text, by characters."""

    start: int
    end: int
    error: KnownError


def anchor(pattern: str) -> str:
    """Characters that stand in every text that the pattern matches: of its longest plain run.

    Shape: empty when there are none, as in a choice of patterns.
    """
    runs = [""]
    depth = 0
    for part in _TOKEN.findall(pattern):
        if part == "|" and not depth:
            return ""
        depth += {"(": 1, ")": -1}.get(part, 0)
        if depth:
            runs.append("")
        elif part[0] in "?*{":
            # The character before is not always there.
            runs[-1] = runs[-1][:-1]
            runs.append("")
        elif part in _SPECIAL or part[0] in "[)+" or re.fullmatch(r"\\\w", part):
            runs.append("")
        else:
            runs[-1] += part[-1]
    return _rare(max(runs, key=len))


def _rare(run: str) -> str:
    starts = range(max(len(run) - _LEAST_CHARACTERS, 0) + 1)
    best = max(starts, key=lambda at: (-_FREQUENT[::-1].find(run[at : at + 1]), -at))
    return run[best : best + ANCHOR_CHARACTERS]


def is_there(text: str) -> bool:
    """Whether an anchor is in a text; without one no pattern matches."""
    return _quick().search(text) is not None


def hits(text: str) -> Iterator[Hit]:
    """Where known errors are in a text, in its order; of those that overlap the longest."""
    if not is_there(text):
        return
    there = [
        Hit(start=match.start(), end=match.end(), error=error)
        for words, pattern, error in _patterns()
        if words in text and (match := pattern.search(text)) is not None
    ]
    kept: list[Hit] = []
    for hit in sorted(there, key=lambda hit: hit.start - hit.end):
        if all(hit.end <= other.start or hit.start >= other.end for other in kept):
            kept.append(hit)
    yield from sorted(kept, key=lambda hit: (hit.start, hit.end))


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], KnownError], ...]:
    return tuple(
        (anchor(text), re.compile(text), error) for error in load_errors() for text in error.match
    )


@cache
def _quick() -> re.Pattern[str]:
    return re.compile(_any_of({words for words, _, _ in _patterns()}))


def _any_of(words: Iterable[str]) -> str:
    """A pattern of all words as a tree: what begins alike is looked at once."""
    rests: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""
        rests.setdefault(word[0], []).append(word[1:])
    branches = (re.escape(first) + _any_of(rest) for first, rest in sorted(rests.items()))
    return branch[0] if len(branch := tuple(branches)) == 1 else f"(?:{'|'.join(branch)})"
