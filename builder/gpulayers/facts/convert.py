"""From TOML values to the fields of facts: one reader for each type, strict."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gpulayers.facts.model import Origin
from gpulayers.versions import Dotted, MajorMinor, VersionError

Row = TypeVar("Row")
Reader = Callable[[object], object]
_KNOWN: dict[type[object], Mapping[str, Reader]] = {}
# What a file writes where a field is None: each says why.
ABSENT = ("unknown", "supported", "none")
# Compute capabilities are of chips from 2.0, CUDA from 9.1: minor versions may be 0.
PAIR = re.compile(r"([0-9]+)\.([0-9]+)", re.ASCII)


class RowError(ValueError):
    """A row is not what its table wants; the text names the key."""


def read(kind: type[Row], table: Mapping[str, object], *, origin: Origin) -> Row:
    """A row of facts.

    Raises: RowError: with every key that is missing, unknown or of another type.
    """
    readers = _readers(kind)
    values: dict[str, object] = {"origin": origin}
    problems = [f"{name}: unknown key" for name in sorted(table.keys() - readers.keys())]
    for name, reader in readers.items():
        if name not in table:
            problems.append(f"{name}: missing")
            continue
        try:
            values[name] = reader(table[name])
        except (ValueError, VersionError) as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise RowError("; ".join(problems))
    return kind(**values)


def _readers(kind: type[object]) -> Mapping[str, Reader]:
    if kind not in _KNOWN:
        hints = get_type_hints(kind)
        _KNOWN[kind] = {name: _reader(hint) for name, hint in hints.items() if name != "origin"}
    return _KNOWN[kind]


def _reader(hint: object) -> Reader:
    if hint in _PLAIN:
        return _PLAIN[hint]
    outer, inner = get_origin(hint), get_args(hint)
    if outer in {Union, UnionType}:
        (wanted,) = (each for each in inner if each is not type(None))
        return _optional(_reader(wanted))
    if outer is Literal:
        return _one_of(inner)
    if outer is tuple:
        return _many(_reader(inner[0]), tuple)
    if outer is frozenset:
        return _many(_reader(inner[0]), frozenset)
    return _texts


def _optional(reader: Reader) -> Reader:
    return lambda value: None if value in ABSENT else reader(value)


def _one_of(words: tuple[object, ...]) -> Reader:
    def check(value: object) -> object:
        if value not in words:
            msg = f"wanted one of {', '.join(map(str, words))}, found {value!r}"
            raise RowError(msg)
        return value

    return check


def _many(reader: Reader, make: Callable[[list[object]], object]) -> Reader:
    def check(value: object) -> object:
        if not isinstance(value, list):
            msg = f"wanted a list, found {value!r}"
            raise RowError(msg)
        found = [reader(each) for each in value]
        if len(set(found)) != len(found):
            msg = f"wanted each value once, found {value!r}"
            raise RowError(msg)
        return make(found)

    return check


def _texts(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        msg = f"wanted a table of texts, found {value!r}"
        raise RowError(msg)
    return value


def _plain(kind: type[object]) -> Reader:
    def check(value: object) -> object:
        if type(value) is not kind:
            msg = f"wanted {kind.__name__}, found {value!r}"
            raise RowError(msg)
        return value

    return check


def _flag(value: object) -> bool:
    if value in {"yes", "no"}:
        return value == "yes"
    return bool(_plain(bool)(value))


def _number(value: object) -> float:
    if type(value) not in {int, float} or not isinstance(value, int | float):
        msg = f"wanted a number, found {value!r}"
        raise RowError(msg)
    return float(value)


@cache
def pair(value: object) -> MajorMinor:
    """``MAJOR.MINOR``, of CUDA, a compute capability or glibc.

    Raises: RowError: anything else.
    """
    match = PAIR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        msg = f"wanted MAJOR.MINOR, found {value!r}"
        raise RowError(msg)
    return MajorMinor(int(match[1]), int(match[2]))


@cache
def _dotted(value: object) -> Dotted:
    if not isinstance(value, str):
        msg = f"wanted a version as text, found {value!r}"
        raise RowError(msg)
    return Dotted.parse(value)


_PLAIN: Mapping[object, Reader] = {
    str: _plain(str),
    int: _plain(int),
    bool: _flag,
    float: _number,
    MajorMinor: pair,
    Dotted: _dotted,
}
