"""ELF files with GPU code, as far as anybody reads of them: heads and no code."""

import struct

from gpulayers.fatbin import MAGIC


def entry(kind: int, arch: int, flags: int = 0) -> bytes:
    code = b"c" * 24
    head = bytearray(64)
    struct.pack_into("<HHIQ", head, 0, kind, 0, len(head), len(code))
    struct.pack_into("<I", head, 28, arch)
    struct.pack_into("<Q", head, 40, flags)
    return bytes(head) + code


def shared_object(*fat_binaries: list[bytes]) -> bytes:
    """An ELF file with one section of GPU code."""
    body = b"".join(
        struct.pack("<IHHQ", MAGIC, 1, 16, len(b"".join(each))) + b"".join(each) + b"\0" * 8
        for each in fat_binaries
    )
    names = b"\0.nv_fatbin\0.shstrtab\0"
    table = 64 + len(body) + len(names)
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, table)
    struct.pack_into("<HHH", head, 0x3A, 64, 3, 2)
    rows = [(0, 0, 0), (1, 64, len(body)), (12, 64 + len(body), len(names))]
    packed = [struct.pack("<IIQQQQ", n, 1, 0, 0, at, size).ljust(64, b"\0") for n, at, size in rows]
    return bytes(head) + body + names + b"".join(packed)
