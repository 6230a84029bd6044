"""Reads out of wheels for which GPUs they carry code, without any tool of NVIDIA.

``python tools/read_sass.py FILE.whl …`` prints, for each wheel, what a row of the facts wants:
``sms`` (SASS), ``exact_sms`` (SASS for that very chip only, ``sm_90a``) and ``ptx``, and which
files have it.

A shared object keeps GPU code in the sections ``.nv_fatbin`` and ``__nv_relfatbin``: fat binaries
one after the other, each a header of 16 bytes (magic, version, its size, the size of what follows)
and entries (kind, …, size of the entry's head, of its code, …, architecture at 28, flags at 40).
Source: the ELF format; the layout of fat binaries is not documented, and was found by reading
libraries whose list is known otherwise.
"""

import argparse
import mmap
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    files: list[str] = field(default_factory=list)

    def add(self, kind: int, arch: int, flags: int) -> None:
        """Note an entry of a fat binary."""
        if kind == PTX:
            self.ptx.add(arch)
        elif kind == SASS and flags & EXACT:
            self.exact_sms.add(arch)
        elif kind == SASS:
            self.sms.add(arch)


def sections(data: mmap.mmap | bytes) -> Iterator[tuple[int, int]]:
    """Start and size of the sections with GPU code of an ELF file of 64 bits; none of another."""
    if data[:4] != ELF or data[4:5] != b"\x02":
        return
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
    names = rows[names_at][4]
    for name, _, _, _, start, length in rows:
        end = data.find(b"\0", names + name)
        if data[names + name : end].decode(errors="replace") in SECTIONS:
            yield start, length


def entries(data: mmap.mmap | bytes, start: int, length: int) -> Iterator[tuple[int, int, int]]:
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
            entry += entry_head + entry_size
        at = stop


def of_wheel(wheel: Path) -> Code:
    """What all shared objects of a wheel carry together."""
    found = Code()
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if ".so" not in Path(name).name:
                continue
            path = Path(archive.extract(name, folder))
            before = len(found.sms | found.exact_sms | found.ptx)
            _read(path, found)
            if len(found.sms | found.exact_sms | found.ptx) > before:
                found.files.append(name)
            path.unlink()  # the biggest have gigabytes
    return found


def _read(path: Path, found: Code) -> None:
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for start, length in sections(data):
            for kind, arch, flags in entries(data, start, length):
                found.add(kind, arch, flags)


def shown(archs: Sequence[int]) -> str:
    """``["7.5", "9.0"]``, as a row has it."""
    return "[" + ", ".join(f'"{arch // 10}.{arch % 10}"' for arch in sorted(archs)) + "]"


def main() -> int:
    """Read, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    for wheel in parser.parse_args().wheels:
        code = of_wheel(wheel)
        print(wheel.name)
        print(f"  sms = {shown([*code.sms])}")
        print(f"  exact_sms = {shown([*code.exact_sms])}")
        print(f"  ptx = {shown([*code.ptx])}")
        print(f"  in {', '.join(code.files) or 'no file'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
