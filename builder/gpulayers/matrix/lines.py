"""Where things stand in a TOML text: the line of every table, key and array element."""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpulayers.errors import Problem

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r'[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|\'[^\']*\'')
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}\n#]+")


class _LostError(Exception):
    """The scanner does not understand the text; what it found before stays good."""


def dotted(path: KeyPath) -> str:
    """A path as people write it: ``axes.cuda[0]``, ``python."3.11".sources``; indices from 0."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE.fullmatch(part) else f'"{part}"'
            text += f".{name}" if text else name
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of the project, for messages: its name, and the line of each thing in it.

    Shape: ``file`` is relative to the project's folder; ``lines`` counts from 1.
    """

    file: str
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """The line of a thing, or of the nearest table around it that is in the text."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path] if path else 1

    def problem(
        self,
        path: KeyPath,
        *,
        wanted: str,
        found: str,
        hint: str = "",
        at: KeyPath | None = None,
    ) -> Problem:
        """A problem with a key; ``at`` is where it shows, when that is another place."""
        line = self.line(path if at is None else at)
        return Problem(
            file=self.file, line=line, key=dotted(path), wanted=wanted, found=found, hint=hint
        )


def locate(text: str) -> dict[KeyPath, int]:
    """The line of every table, key and array element of a text that is valid TOML.

    Shape: elements of arrays, arrays of tables too, have their index (from 0) in the path. A key
    in double quotes that has escapes in it is not found, so its table's line serves.
    """
    scan = _Scan(text)
    with contextlib.suppress(_LostError, RecursionError):
        scan.document()
    return scan.found


class _Scan:
    """One pass over a text; remembers where each path was first written."""

    def __init__(self, text: str) -> None:
        self.found: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        self._rows: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        while self._skip():
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)

    def _skip(self) -> bool:
        self._take(_BLANK)
        return self._at < len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _LostError
        self._at = match.end()
        return match[0]

    def _peek(self, start: str) -> bool:
        return self._text.startswith(start, self._at)

    def _expect(self, start: str) -> None:
        if not self._peek(start):
            raise _LostError
        self._at += len(start)

    def _here(self) -> int:
        # Positions only grow, so each newline is counted once.
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _keys(self) -> tuple[str, ...]:
        keys: list[str] = []
        while True:
            self._skip()
            key = self._take(_KEY)
            keys.append(key[1:-1] if key[0] in "\"'" else key)
            self._skip()
            if not self._peek("."):
                return tuple(keys)
            self._at += 1

    def _header(self) -> KeyPath:
        is_row = self._peek("[[")
        line = self._here()
        self._at += 2 if is_row else 1
        *parents, last = self._keys()
        self._expect("]]" if is_row else "]")
        path: KeyPath = ()
        for parent in parents:
            path = (*path, parent)
            self.found.setdefault(path, line)
            if path in self._rows:
                path = (*path, self._rows[path])
        path = (*path, last)
        if is_row:
            self.found.setdefault(path, line)
            self._rows[path] = self._rows.get(path, -1) + 1
            path = (*path, self._rows[path])
        self.found[path] = line
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._here()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.found.setdefault(path, line)
        self._expect("=")
        self._skip()
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline(path)
        else:
            self._take(_STRING if self._peek('"') or self._peek("'") else _SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._skip() and not self._peek("]"):
            self.found[*path, index] = self._here()
            self._value((*path, index))
            index += 1
            self._comma("]")
        self._expect("]")

    def _inline(self, path: KeyPath) -> None:
        self._at += 1
        while self._skip() and not self._peek("}"):
            self._pair(path)
            self._comma("}")
        self._expect("}")

    def _comma(self, end: str) -> None:
        self._skip()
        if not self._peek(end):
            self._expect(",")
