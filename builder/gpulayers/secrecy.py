"""What is a secret: names that look like those of one, and the values that are known to be one."""

import base64
import json
import re
import threading
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SECRET_NAME = re.compile(r"(?i)(token|secret|passw(or)?d|credential|api[-_]?key|private[-_]?key)")
OWN = re.compile(r"ca|netrc|uv-config(-.*)?|pip-config|apt(-.*)?")
# Shorter ones stand in ordinary words, and so cannot be blanked.
SHORTEST = 4
# Shorter ones are blanked as whole words only, and not in base64: ``pass`` stands in ``passed``.
SURE = 8
_FENCE = re.compile(r"-{3,}[A-Z ]+-{3,}")
BLANK = "***"


def is_secret(name: str) -> bool:
    """Whether a variable of that name is taken for a secret."""
    return SECRET_NAME.search(name) is not None


def is_own(name: str) -> bool:
    """Whether a secret's id is one of those that the machine's settings have in a build."""
    return OWN.fullmatch(name) is not None


class _Hidden:
    """The values that this process must never show, in every spelling that tools give them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spellings: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        found = {form for part in _parts(value) for form in _spellings(part)}
        with self._lock:
            if found <= self._spellings:
                return
            self._spellings |= found
            longest_first = sorted(self._spellings, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_sought, longest_first)))

    def blank(self, text: str) -> str:
        pattern = self._pattern
        return text if pattern is None else pattern.sub(BLANK, text)

    def forget(self) -> None:
        with self._lock:
            self._spellings, self._pattern = frozenset(), None


_hidden = _Hidden()


def hide(value: str) -> None:
    """From now on blank that value in everything that is shown or kept, in whatever spelling.

    Shape: blanks around it are no part of it; one of fewer than four characters is not blanked, one
    of fewer than eight only where it stands as a word.
    """
    _hidden.add(value)


def blank(text: str) -> str:
    """The text with the hidden values blanked: as they are, in base64, in URLs, in JSON."""
    return _hidden.blank(text)


def forget() -> None:
    """Hide nothing any more."""
    _hidden.forget()


def _sought(form: str) -> str:
    whole = re.escape(form)
    return whole if len(form) >= SURE else rf"(?<![A-Za-z0-9]){whole}(?![A-Za-z0-9])"


def _parts(value: str) -> Iterator[str]:
    whole = value.strip()
    if len(whole) >= SHORTEST:
        yield whole
    lines = whole.splitlines()
    for line in (line.strip() for line in lines if len(lines) > 1):
        if len(line) >= SURE and not _FENCE.fullmatch(line):
            yield line


def _spellings(value: str) -> Iterator[str]:
    yield value
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield value.replace("'", "'\\''")
    yield repr(value)[1:-1]
    yield value.encode().hex()
    yield from _in_base64(value.encode())


def _in_base64(data: bytes) -> Iterator[str]:
    """How the bytes look in base64 wherever they stand in what was encoded (``USER:PASSWORD``).

    A letter of base64 is six bits: at the ends, letters that hold bits of neighbours are left out.
    """
    for before in range(3):
        start = -(-before * 8 // 6)
        end = (before + len(data)) * 8 // 6
        text = base64.b64encode(bytes(before) + data + bytes(2)).decode()[start:end]
        if len(text) >= SURE:
            yield text
            yield text.replace("+", "-").replace("/", "_")
    # As ``base64`` prints what is long.
    lines = base64.encodebytes(data).decode().split()
    yield from (line for line in lines[:-1] if len(lines) > 1)
