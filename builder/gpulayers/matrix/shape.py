"""Narrowing what TOML gives: tables that know which keys they have, and every problem at once."""

import datetime as dt
import difflib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gpulayers.errors import GpulayersError, Problem
from gpulayers.matrix.lines import KeyPath, Source

T = TypeVar("T")
_SHOWN = 60
_LISTED = 12
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),  # before int: a bool is one
    (str, "a string"),
    (int, "an integer"),
    (float, "a float"),
    (list, "an array"),
    (dict, "a table"),
    (dt.datetime, "a date-time"),
    (dt.date, "a date"),
    (dt.time, "a time"),
)


def quoted(text: str) -> str:
    """A string as TOML writes it, cut where it is long."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return json.dumps(cut, ensure_ascii=False)


def typed(value: object) -> str:
    """The TOML type of a value, with the value itself where that is short."""
    kind = next((name for cls, name in _KINDS if isinstance(value, cls)), "something else")
    match value:
        case bool():
            return f"{kind} ({str(value).lower()})"
        case str():
            return f"{kind} ({quoted(value)})"
        case list() | dict():
            return kind
        case _:
            return f"{kind} ({str(value)[:_SHOWN]})"


def nearest(name: str, known: Collection[str]) -> str:
    """The hint for an unknown name: the nearest known one, else some that are known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = ", …" if len(names) > _LISTED else ""
    return f"known: {', '.join(names[:_LISTED])}{more}" if names else ""


@dataclass(slots=True, kw_only=True)
class Report:
    """Collects the problems of one file.

    Shape: ``names`` has for each table of named tables (``base``, ``model``) the names in it that
    are well formed, in the order of the file.
    """

    source: Source
    problems: list[Problem] = field(default_factory=list)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _sections: set[str | int] = field(default_factory=set)

    def add(
        self,
        path: KeyPath,
        *,
        wanted: str,
        found: str,
        hint: str = "",
        at: KeyPath | None = None,
    ) -> None:
        """Note a problem; ``at`` is where it shows, when that is not where its key is."""
        self._sections.update(path[:1])
        self.problems.append(
            self.source.problem(path, wanted=wanted, found=found, hint=hint, at=at)
        )

    def is_clean(self, *sections: str) -> bool:
        """Whether these top-level tables have no problem, so that more can be said about them."""
        return self._sections.isdisjoint(sections)

    def ordered(self) -> tuple[Problem, ...]:
        """The problems from the top of the file to its end."""
        return tuple(sorted(self.problems, key=lambda problem: problem.line))


def _itself(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """What a string has to be: ``parse`` gives None where it does not fit.

    Shape: ``same`` gives what two values share when they count as one (for lists without doubles).
    """

    wanted: str
    parse: Callable[[str], T | None]
    hint: str = ""
    same: Callable[[T], object] = _itself


def parsed(
    wanted: str,
    parse: Callable[[str], T],
    *,
    hint: str = "",
    same: Callable[[T], object] = _itself,
) -> Rule[T]:
    """A rule from a constructor that raises one of our errors on what does not fit."""

    def attempt(text: str) -> T | None:
        try:
            return parse(text)
        except GpulayersError:
            return None

    return Rule(wanted, attempt, hint, same)


class Table:
    """A TOML table that is read key by key; ``close`` reports the keys that nobody asked for.

    A key that is missing or wrong is reported and read as None or empty, so that reading goes on.
    """

    def __init__(self, report: Report, path: KeyPath, value: object) -> None:
        self.report = report
        self.path = path
        self._left = self._narrowed(value)
        self._known: list[str] = []

    def _narrowed(self, value: object) -> dict[str, object]:
        if isinstance(value, dict):
            return {str(key): item for key, item in value.items()}
        if value is not None:
            self.report.add(self.path, wanted="a table", found=typed(value))
        return {}

    def take(self, key: str) -> object:
        """The value of a key, or None."""
        self._known.append(key)
        return self._left.pop(key, None)

    def unread(self) -> tuple[str, ...]:
        """The keys that are not yet taken, in the order they were written."""
        return tuple(self._left)

    def has(self, key: str) -> bool:
        """Whether the key is there and not yet taken."""
        return key in self._left

    def add(self, key: str, *, wanted: str, found: str, hint: str = "") -> None:
        """Note a problem with one of the keys."""
        self.report.add((*self.path, key), wanted=wanted, found=found, hint=hint)

    def one(self, key: str, rule: Rule[T]) -> T | None:
        """A string that need not be there."""
        value = self.take(key)
        return None if value is None else self._fit((*self.path, key), rule, value)

    def need(self, key: str, rule: Rule[T]) -> T | None:
        """A string that has to be there."""
        if not self.has(key):
            self.add(key, wanted=rule.wanted, found="nothing")
        return self.one(key, rule)

    def many(
        self, key: str, rule: Rule[T], *, least: int = 0, default: tuple[T, ...] | None = None
    ) -> tuple[T, ...]:
        """A list of strings without doubles; it has to be there when there is no default."""
        value = self.take(key)
        wanted = f"a list of strings, each {rule.wanted}"
        if value is None:
            if default is None:
                self.add(key, wanted=wanted, found="nothing")
            return default or ()
        if not isinstance(value, list):
            self.add(key, wanted=wanted, found=typed(value), hint="write it in [ ]")
            return ()
        if len(value) < least:
            self.add(key, wanted=f"at least one: {rule.wanted}", found="an empty array")
        return self._items((*self.path, key), rule, value)

    def _items(self, path: KeyPath, rule: Rule[T], values: list[object]) -> tuple[T, ...]:
        first: dict[object, T] = {}
        for index, value in enumerate(values):
            item = self._fit((*path, index), rule, value)
            if item is None:
                continue
            if rule.same(item) in first:
                self.report.add(
                    (*path, index),
                    wanted="each value once",
                    found=f"{quoted(str(value))} a second time",
                    hint="remove one of the two",
                )
            first.setdefault(rule.same(item), item)
        return tuple(first.values())

    def _fit(self, path: KeyPath, rule: Rule[T], value: object) -> T | None:
        if not isinstance(value, str):
            hint = f'write it in quotes: "{value}"' if isinstance(value, int | float) else ""
            self.report.add(path, wanted=rule.wanted, found=typed(value), hint=hint)
            return None
        item = rule.parse(value)
        if item is None:
            self.report.add(path, wanted=rule.wanted, found=quoted(value), hint=rule.hint)
        return item

    def number(self, key: str, *, least: int, most: int | None = None) -> int | None:
        """An integer within bounds, or None where there is none."""
        value = self.take(key)
        if value is None:
            return None
        wanted = f"an integer from {least}" + (f" to {most}" if most is not None else " up")
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(key, wanted=wanted, found=typed(value))
            return None
        if value < least or (most is not None and value > most):
            self.add(key, wanted=wanted, found=str(value))
            return None
        return value

    def sub(self, key: str) -> "Table":
        """The table under a key; an empty one where there is none."""
        return Table(self.report, (*self.path, key), self.take(key))

    def rows(self, key: str) -> tuple["Table", ...]:
        """The tables of an array of tables (``[[key]]``)."""
        value = self.take(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.add(key, wanted=f"tables, each under [[{key}]]", found=typed(value))
            return ()
        return tuple(
            Table(self.report, (*self.path, key, index), item) for index, item in enumerate(value)
        )

    def named(self, key: str, rule: Rule[str]) -> tuple[tuple[str, "Table"], ...]:
        """The tables under ``[key.NAME]`` with their names, also those with a wrong name."""
        table = self.sub(key)
        names = table.unread()
        fitting = tuple(name for name in names if rule.parse(name) is not None)
        self.report.names[key] = fitting
        for name in names:
            if name not in fitting:
                table.add(name, wanted=rule.wanted, found=quoted(name), hint=rule.hint)
        return tuple((name, table.sub(name)) for name in names)

    def strings(self, key: str) -> Mapping[str, str]:
        """A table of strings, in the order they were written."""
        table = self.sub(key)
        anything = Rule("a string", str)
        pairs = ((name, table.one(name, anything)) for name in table.unread())
        return {name: value for name, value in pairs if value is not None}

    def close(self) -> None:
        """Report every key that was not taken, with the nearest known one."""
        for key in self._left:
            hint = nearest(key, self._known)
            known = f"one of the keys of {'the file' if not self.path else 'this table'}"
            self.add(key, wanted=known, found=f"the unknown key {quoted(key)}", hint=hint)
