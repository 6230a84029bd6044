"""Writes a bbolt file in plain Python: every bucket a fully packed B+tree, nothing rewritten.

Pages 0 and 1 are meta pages (both valid, same root), page 2 an empty free list, then leaf and
branch pages, each followed by its overflow pages. All integers are little-endian.

    page header    16 B  id u64, flags u16 (1 branch, 2 leaf, 4 meta, 16 free list), count u16,
                         overflow u32
    leaf element   16 B  flags u32 (1: the value is a bucket), pos u32, key size u32, value size u32
    branch element 16 B  pos u32, key size u32, child page id u64
                         (pos counts from the start of this element to its key; the value follows)
    bucket value   16 B  root page id u64, sequence u64; root 0 is inline: a leaf page follows
    meta           64 B  magic u32, version u32, page size u32, flags u32, root bucket (16 B),
                         free list page u64, high-water page u64, transaction u64, FNV-1a-64

Source: go.etcd.io/bbolt internal/common/{page,meta,bucket,inode}.go (read 2026-12-01); version 2
of the format, which bbolt 1.3 to 1.5 read.
"""

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

Tree: TypeAlias = dict[str, "bytes | Tree"]
Item = TypeVar("Item")
Leaf: TypeAlias = tuple[bytes, int, bytes]  # key, flags, value
Branch: TypeAlias = tuple[bytes, int]  # key, child page

PAGE = 4096
BRANCH, LEAF, META, FREE_LIST = 1, 2, 4, 16
MAGIC, VERSION = 0xED0CDAED, 2
HEADER = struct.Struct("<QHHI")
LEAF_ELEMENT = struct.Struct("<IIII")
BRANCH_ELEMENT = struct.Struct("<IIQ")
BUCKET = struct.Struct("<QQ")
META_BODY = struct.Struct("<IIIIQQQQQ")
MAX_KEY_BYTES = 32768
MAX_ITEMS = 0xFFFE


def checksum(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def write(path: Path, tree: Tree) -> int:
    """Write the tree as a bbolt file and return its size; a reader of an old file keeps that."""
    raw = _Writer().file(tree)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_bytes(raw)
    unfinished.replace(path)
    return len(raw)


class _Writer:
    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}  # first page id: bytes, a multiple of PAGE
        self.next_id = 3

    def file(self, tree: Tree) -> bytes:
        if not all(isinstance(value, dict) for value in tree.values()):
            msg = "the root of a bbolt file holds buckets only"
            raise ValueError(msg)
        root, sequence = BUCKET.unpack(self.bucket(tree, is_root=True))
        out = bytearray()
        for transaction in (0, 1):
            body = META_BODY.pack(
                MAGIC, VERSION, PAGE, 0, root, sequence, 2, self.next_id, transaction
            )
            body += struct.pack("<Q", checksum(body))
            out += (HEADER.pack(transaction, META, 0, 0) + body).ljust(PAGE, b"\0")
        out += HEADER.pack(2, FREE_LIST, 0, 0).ljust(PAGE, b"\0")
        for page in sorted(self.pages):
            out += self.pages[page]
        return bytes(out)

    def bucket(self, tree: Tree, *, is_root: bool = False) -> bytes:
        """The bucket's header, with its page behind it where it is small and flat."""
        items = sorted(self._leaf(name, value) for name, value in tree.items())
        size = HEADER.size + sum(_leaf_size(item) for item in items)
        if not is_root and size <= PAGE // 4 and not any(flags for _, flags, _ in items):
            return BUCKET.pack(0, 0) + HEADER.pack(0, LEAF, len(items), 0) + _leaf_body(items)
        level: list[Branch] = [
            (chunk[0][0], self._page(LEAF, len(chunk), _leaf_body(chunk)))
            for chunk in _chunks(items, _leaf_size, at_least=1)
        ]
        if not level:
            level = [(b"", self._page(LEAF, 0, b""))]
        while len(level) > 1:
            level = [
                (chunk[0][0], self._page(BRANCH, len(chunk), _branch_body(chunk)))
                for chunk in _chunks(level, _branch_size, at_least=2)
            ]
        return BUCKET.pack(level[0][1], 0)

    def _leaf(self, name: str, value: "bytes | Tree") -> Leaf:
        key = name.encode()
        if not 0 < len(key) <= MAX_KEY_BYTES:
            msg = f"wanted a key of 1 to {MAX_KEY_BYTES} bytes, found {len(key)}"
            raise ValueError(msg)
        return (key, 1, self.bucket(value)) if isinstance(value, dict) else (key, 0, value)

    def _page(self, flags: int, count: int, body: bytes) -> int:
        pages = -(-(HEADER.size + len(body)) // PAGE)
        page = self.next_id
        self.next_id += pages
        raw = HEADER.pack(page, flags, count, pages - 1) + body
        self.pages[page] = raw.ljust(pages * PAGE, b"\0")
        return page


def _leaf_size(item: Leaf) -> int:
    return LEAF_ELEMENT.size + len(item[0]) + len(item[2])


def _branch_size(item: Branch) -> int:
    return BRANCH_ELEMENT.size + len(item[0])


def _leaf_body(items: list[Leaf]) -> bytes:
    head, data = bytearray(), bytearray()
    for index, (key, flags, value) in enumerate(items):
        position = (len(items) - index) * LEAF_ELEMENT.size + len(data)
        head += LEAF_ELEMENT.pack(flags, position, len(key), len(value))
        data += key + value
    return bytes(head + data)


def _branch_body(items: list[Branch]) -> bytes:
    head, data = bytearray(), bytearray()
    for index, (key, page) in enumerate(items):
        position = (len(items) - index) * BRANCH_ELEMENT.size + len(data)
        head += BRANCH_ELEMENT.pack(position, len(key), page)
        data += key
    return bytes(head + data)


def _chunks(
    items: list[Item], size_of: Callable[[Item], int], *, at_least: int
) -> Iterator[list[Item]]:
    """Pack items into pages; a page gets ``at_least`` of them even when they overflow it."""
    chunk: list[Item] = []
    used = HEADER.size
    for item in items:
        size = size_of(item)
        if len(chunk) >= at_least and (used + size > PAGE or len(chunk) >= MAX_ITEMS):
            yield chunk
            chunk, used = [], HEADER.size
        chunk.append(item)
        used += size
    if chunk:
        yield chunk
