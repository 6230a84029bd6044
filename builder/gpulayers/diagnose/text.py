"""The text of a log: its bytes decoded, its lines numbered, and what was cut put together."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

# Colours and cursor movements of terminals.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
# A line of a progress bar or a dump may be endless: it is looked at in pieces, which overlap by
# more than any message is long.
PIECE = 4000
OVERLAP = 500
CHUNK_BYTES = 1 << 20
# What Kubernetes' runtimes write: time, stream, P for a part of a line and F for its end.
# https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
CRI = re.compile(
    r"(?P<time>\d{4}-\S+) (?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S*)? (?P<rest>.*)"
)
# What stands before the words of a line: times, levels, ranks, steps of a build.
PREFIX = re.compile(
    r"""(?:\s*(?:
        \d{4}-\d\d-\d\d[T\ ]\d\d:[\d:.,]+(?:Z|[+-]\d\d:?\d\d)?
        | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S+\ \S+:(?=\s)
        | std(?:out|err)\ [FP](?=\s)
        | \[[^\]\[]{1,40}\]:?
        | \([^()]{1,40}\)(?=\s)
        | \#\d+\ [\d.]+(?=\s)
        | [DIWEF]\d{4}\ [\d:.]+\ [^\]]{1,60}\]
        | (?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b:?
        | \|
    ))*\s*""",
    re.VERBOSE,
)
ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/nrt]))')


def read(file: BinaryIO) -> Iterator[str]:
    """The lines of a file, without their ends: UTF-16 where it says so, else UTF-8."""
    chunk = file.read(CHUNK_BYTES)
    decoder = codecs.getincrementaldecoder(_encoding(chunk))(errors="replace")
    rest = ""
    while chunk:
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        yield from lines
        chunk = file.read(CHUNK_BYTES)
    yield rest + decoder.decode(b"", final=True)


def _encoding(start: bytes) -> str:
    """Two bytes in front are no proof: what follows has to look like it, a zero in many a pair."""
    order = {codecs.BOM_UTF16_LE: 1, codecs.BOM_UTF16_BE: 0}.get(start[:2])
    if order is not None:
        high = start[2 + order : 514 : 2]
        if high.count(0) > len(high) // 4:
            return "utf-16"
    return "utf-8-sig"


def numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, what a carriage return parts as lines of their own.

    Shape: a long line comes in pieces of one number; a line that Kubernetes cut comes whole, with
    the number of its first part.
    """
    parts: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(_clean(lines), 1):
        first, whole = number, line
        if (cut := CRI.fullmatch(line)) is not None and (
            cut["tag"] == "P" or cut["stream"] in parts
        ):
            first, start = parts.pop(cut["stream"], (number, line[: cut.start("rest")]))
            whole = start + cut["rest"]
            if cut["tag"] == "P":
                parts[cut["stream"]] = (first, whole)
                continue
        yield from _pieces(first, whole)
    for first, whole in parts.values():
        yield from _pieces(first, whole)


def _clean(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        plain = line.rstrip("\r\n")
        if plain.isprintable():
            yield plain
        else:
            yield from CONTROL.sub("", plain).replace("\r", "\n").splitlines() or [""]


def _pieces(number: int, line: str) -> Iterator[tuple[int, str]]:
    yield number, line[:PIECE]
    for start in range(PIECE - OVERLAP, len(line) - OVERLAP, PIECE - OVERLAP):
        yield number, line[start : start + PIECE]


def unescaped(line: str) -> str:
    r"""What JSON means by it: ``\"`` and ``\u003e`` as characters, an end of a line as a space."""
    for _ in range(2):
        if "\\" not in line:
            break
        line = ESCAPE.sub(_character, line)
    return line


def _character(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else {"n": " ", "r": " ", "t": " "}.get(letter, letter)


def bare(line: str) -> str:
    """The words of a line, without times, levels and the like before them."""
    match = PREFIX.match(line)
    return line[match.end() :] if match is not None else line
