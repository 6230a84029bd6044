"""Reads a bbolt file: Trivy's ``trivy.db`` and ``fanal.db`` among them. No lock is taken."""

import struct
from collections.abc import Iterator
from pathlib import Path

from trivy_db.bolt import (
    BRANCH,
    BRANCH_ELEMENT,
    BUCKET,
    HEADER,
    LEAF,
    LEAF_ELEMENT,
    MAGIC,
    META_BODY,
    PAGE,
    VERSION,
    Tree,
    checksum,
)


def read(path: Path) -> Tree:
    """The whole file as nested buckets.

    Raises: ValueError: it is no bbolt file, both of its meta pages are damaged, or it is cut short.
    """
    return _Reader(path.read_bytes()).tree()


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        metas = [meta for offset in (0, PAGE) if (meta := self._meta(offset))]
        if not metas:
            msg = "no bbolt file, or both meta pages are damaged"
            raise ValueError(msg)
        _, self.page_size, self.root, high = max(metas)
        if high * self.page_size > len(raw):
            msg = f"cut short: wanted {high * self.page_size} bytes, found {len(raw)}"
            raise ValueError(msg)

    def tree(self) -> Tree:
        return self._tree(self._walk(self.root))

    def _meta(self, offset: int) -> tuple[int, int, int, int] | None:
        body = self.raw[offset + HEADER.size :][: META_BODY.size + 8]
        if len(body) < META_BODY.size + 8:
            return None
        magic, version, size, _, root, _, _, high, transaction = META_BODY.unpack(body[:-8])
        (found,) = struct.unpack("<Q", body[-8:])
        if (magic, version, found) != (MAGIC, VERSION, checksum(body[:-8])):
            return None
        return transaction, size, root, high

    def _tree(self, items: Iterator[tuple[bytes, int, bytes]]) -> Tree:
        return {
            key.decode("utf-8", "replace"): self._tree(self._bucket(value)) if flags else value
            for key, flags, value in items
        }

    def _bucket(self, value: bytes) -> Iterator[tuple[bytes, int, bytes]]:
        root, _ = BUCKET.unpack_from(value)
        return self._walk(root) if root else _leaves(value, BUCKET.size)

    def _walk(self, page: int) -> Iterator[tuple[bytes, int, bytes]]:
        offset = page * self.page_size
        _, flags, count, _ = HEADER.unpack_from(self.raw, offset)
        if flags == LEAF:
            yield from _leaves(self.raw, offset)
        elif flags == BRANCH:
            for index in range(count):
                element = offset + HEADER.size + index * BRANCH_ELEMENT.size
                _, _, child = BRANCH_ELEMENT.unpack_from(self.raw, element)
                yield from self._walk(child)
        else:
            msg = f"page {page}: wanted a leaf or a branch, found flags {flags:#x}"
            raise ValueError(msg)


def _leaves(raw: bytes, offset: int) -> Iterator[tuple[bytes, int, bytes]]:
    _, _, count, _ = HEADER.unpack_from(raw, offset)
    for index in range(count):
        element = offset + HEADER.size + index * LEAF_ELEMENT.size
        flags, position, key_size, value_size = LEAF_ELEMENT.unpack_from(raw, element)
        key = element + position
        yield raw[key : key + key_size], flags, raw[key + key_size : key + key_size + value_size]
