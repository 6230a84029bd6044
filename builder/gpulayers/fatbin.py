"""For which GPUs an ELF file carries code, read without any tool of NVIDIA.

A shared object keeps GPU code in the sections ``.nv_fatbin`` and ``__nv_relfatbin``: fat binaries
one after the other, each a header of 16 bytes (magic, version, its size, the size of what follows)
and entries (kind, …, size of the entry's head, of its code, …, architecture at 28, flags at 40).
Source: the ELF format; the layout of fat binaries is not documented, and was found by reading
libraries whose list is known otherwise.
"""

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

ELF = b"\x7fELF"
SECTIONS = frozenset({".nv_fatbin", "__nv_relfatbin"})
MAGIC = 0xBA55ED50
PTX, SASS = 1, 2
# Set for code of one chip only: sm_90a.
EXACT = 0x100000
# Padding between fat binaries is a multiple of it.
STEP = 8


@dataclass(slots=True)
class Code:
    """Architectures that code is there for, as NVIDIA's tools number them: 90 is 9.0."""

    sms: set[int] = field(default_factory=set)
    exact_sms: set[int] = field(default_factory=set)
    ptx: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.sms or self.exact_sms or self.ptx)

    def add(self, other: "Code") -> None:
        """Take in what another file has."""
        self.sms |= other.sms
        self.exact_sms |= other.exact_sms
        self.ptx |= other.ptx

    def note(self, kind: int, arch: int, flags: int) -> None:
        """Note an entry of a fat binary."""
        if kind == PTX:
            self.ptx.add(arch)
        elif kind == SASS and flags & EXACT:
            self.exact_sms.add(arch)
        elif kind == SASS:
            self.sms.add(arch)


def read(file: BinaryIO) -> Code:
    """What one file carries; nothing of one that is no ELF file of 64 bits, or is cut off.

    Shape: ``file`` is a real one, from its start: it is mapped into memory, not read.
    """
    found = Code()
    file.seek(0, 2)
    if not file.tell():
        return found
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            for start, length in _sections(data):
                for entry in _entries(data, start, length):
                    found.note(*entry)
        except (struct.error, IndexError):
            return Code()
    return found


def _sections(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Start and size of the sections with GPU code."""
    if data[:4] != ELF or data[4:5] != b"\x02":
        return
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
    if not rows:
        return  # stripped of its table
    names = rows[names_at][4]
    for name, _, _, _, start, length in rows:
        end = data.find(b"\0", names + name)
        if data[names + name : end].decode(errors="replace") in SECTIONS:
            yield start, length


def _entries(data: mmap.mmap, start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Kind, architecture and flags of every piece of code in a section."""
    at, end = start, start + length
    while at + 16 <= end:
        magic, _, head, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            at += STEP
            continue
        entry, stop = at + head, at + head + size
        while entry + 64 <= stop:
            kind, _, entry_head, entry_size = struct.unpack_from("<HHIQ", data, entry)
            (arch,) = struct.unpack_from("<I", data, entry + 28)
            (flags,) = struct.unpack_from("<Q", data, entry + 40)
            yield kind, arch, flags
            if not entry_head + entry_size:
                break
            entry += entry_head + entry_size
        at = stop
