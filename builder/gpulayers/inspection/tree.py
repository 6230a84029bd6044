"""One layer's tar read as it comes: of its files only those that tell something are kept."""

import gzip
import io
import re
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from gpulayers import fatbin
from gpulayers.fatbin import Code

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

V = TypeVar("V", tuple[str, str], int, str, Code)
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BUFFER = 1 << 20
METADATA_BYTES = 64 << 10
METADATA = re.compile(r"(?:^|/)[^/]+\.dist-info/METADATA$")
PYTHON = re.compile(r"^(?P<folder>(?:.*/)?lib/python(?P<release>3\.\d+))/os\.py$")
CUDA = re.compile(
    r"(?:^|/)lib(?:cudart|cublas|cublasLt|cufft|cufftw|curand|cusolver|cusolverMg|cusparse"
    r"|cusparseLt|nvrtc|nvrtc-builtins|nvJitLink|nvjpeg|npp\w+|cudnn\w*|nccl|nvToolsExt|cupti"
    r"|cufile|nvshmem_host|nvinfer\w*|nvvm)\.so[.\d]*$"
)
DRIVER = re.compile(r"(?:^|/)lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so[.\d]*$")
LIBC = re.compile(r"(?:^|/)libc(?:\.so\.6|-2\.\d+\.so)$")
LIBC_BYTES = 16 << 20
# What glibc says of itself when it is run as a program.
GLIBC = re.compile(rb"GNU C Library [^\n]*release version (\d+\.\d+)")
SYSTEM = re.compile(r"(?:^|/)(?:etc|usr/lib)/os-release$")
SYSTEM_BYTES = 64 << 10
# Smaller ones hold no GPU code worth the reading.
CODE_BYTES = 4096
# OCI image specification, "Whiteouts".
GONE, OPAQUE = ".wh.", ".wh..wh..opq"


class UnreadableError(Exception):
    """A layer's bytes are no tar that we can read; says why."""


@dataclass(slots=True)
class Tree:
    """What was seen in one layer, by path without a slash at its start.

    Shape: ``gone`` are paths that it takes away from the layers below, folders that it empties
    end with a slash; ``wheels`` maps a METADATA file to name and version; ``code`` has the GPU code
    of files that are not CUDA's own, where that was asked for; ``libcs`` are releases of glibc,
    ``systems`` an OS as ``debian12``.
    """

    wheels: dict[str, tuple[str, str]] = field(default_factory=dict)
    libraries: dict[str, int] = field(default_factory=dict)
    pythons: dict[str, str] = field(default_factory=dict)
    libcs: dict[str, str] = field(default_factory=dict)
    systems: dict[str, str] = field(default_factory=dict)
    code: dict[str, Code] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)


class _Pieces(io.RawIOBase):
    """A file to read from pieces that come one by one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def read(pieces: Iterable[bytes], *, with_code: bool = False) -> Tree:
    """Read a layer: a tar, plain or packed with gzip or zstd, as a registry has it.

    Shape: ``with_code`` looks into each ELF file for GPU code, which takes room on the disk for the
    biggest of them.
    Raises: UnreadableError: it is none; and what the pieces raise.
    """
    source = iter(pieces)
    raw = io.BufferedReader(_Pieces(source), BUFFER)
    tree = Tree()
    try:
        # Its own buffer: the tar reader asks for 512 bytes at a time.
        with tarfile.open(fileobj=_unpacked(raw), mode="r|", bufsize=BUFFER) as archive:
            while (member := archive.next()) is not None:
                vars(archive)["members"].clear()  # a layer can have a hundred thousand
                _look(archive, member, tree, with_code=with_code)
    except (tarfile.TarError, zlib.error, zstd.ZstdError, EOFError, gzip.BadGzipFile) as error:
        raise UnreadableError(" ".join(str(error).split()) or type(error).__name__) from error
    for _ in source:  # to the end, where its digest is compared
        pass
    return tree


def _unpacked(raw: "io.BufferedReader[_Pieces]") -> io.BufferedIOBase:
    start = raw.peek(len(ZSTD))
    if start.startswith(GZIP):
        return gzip.GzipFile(fileobj=raw)
    if start.startswith(ZSTD):
        return zstd.ZstdFile(raw)
    return raw


def _look(
    archive: tarfile.TarFile, member: tarfile.TarInfo, tree: Tree, *, with_code: bool
) -> None:
    path = member.name.removeprefix("./").strip("/")
    folder, _, name = path.rpartition("/")
    if name == OPAQUE:
        tree.gone.append(f"{folder}/")
    elif name.startswith(GONE):
        tree.gone.append(f"{folder}/{name.removeprefix(GONE)}".lstrip("/"))
    elif not member.isfile():
        return
    elif METADATA.search(path):
        tree.wheels[path] = parse_metadata(_start(archive, member, METADATA_BYTES))
    elif CUDA.search(path) or DRIVER.search(path):
        tree.libraries[path] = member.size
    elif not _note_system(archive, member, path, tree) and with_code:
        _note_code(archive, member, path, tree)


def _note_system(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, tree: Tree) -> bool:
    """Note a file that tells of Python, glibc or the OS; whether it is one."""
    if (found := PYTHON.match(path)) is not None:
        tree.pythons[found["folder"]] = found["release"]
    elif LIBC.search(path):
        release = GLIBC.search(_start(archive, member, LIBC_BYTES))
        if release is not None:
            tree.libcs[path] = release[1].decode()
    elif SYSTEM.search(path):
        tree.systems[path] = parse_system(_start(archive, member, SYSTEM_BYTES))
    else:
        return False
    return True


def _start(archive: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    file = archive.extractfile(member)
    return file.read(most) if file is not None else b""


def _note_code(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, tree: Tree) -> None:
    file = archive.extractfile(member) if member.size >= CODE_BYTES else None
    start = file.read(len(fatbin.ELF)) if file is not None else b""
    if file is None or start != fatbin.ELF:
        return
    # Its table of sections stands at its end, and the layer comes as a stream.
    with tempfile.TemporaryFile() as copy:
        copy.write(start)
        shutil.copyfileobj(file, copy, BUFFER)
        copy.flush()
        code = fatbin.read(copy)
    if code:
        tree.code[path] = code


def parse_system(data: bytes) -> str:
    """An OS as ``debian12`` or ``ubuntu22.04``, "" where os-release does not say it.

    Source: os-release(5): ID and VERSION_ID, with or without quotes.
    """
    lines = data.decode("utf-8", errors="replace").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    name, version = (found.get(key, "").strip(" \"'") for key in ("ID", "VERSION_ID"))
    return f"{name}{version}" if name else ""


def parse_metadata(data: bytes) -> tuple[str, str]:
    """Name and version in a package's METADATA, each "" where it is not said."""
    head = data.decode("utf-8", errors="replace").replace("\r\n", "\n").partition("\n\n")[0]
    found = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return found.get("Name", "").strip(), found.get("Version", "").strip()


def merged(trees: Iterable[tuple[str, Tree]]) -> tuple[Tree, dict[str, str]]:
    """All layers, lowest first, as one tree, and the owner of each path in it."""
    whole, owners = Tree(), dict[str, str]()
    for owner, tree in trees:
        for gone in tree.gone:
            _remove(whole.wheels, gone)
            _remove(whole.libraries, gone)
            _remove(whole.pythons, gone)
            _remove(whole.libcs, gone)
            _remove(whole.systems, gone)
            _remove(whole.code, gone)
        whole.wheels |= tree.wheels
        whole.libraries |= tree.libraries
        whole.pythons |= tree.pythons
        whole.libcs |= tree.libcs
        whole.systems |= tree.systems
        whole.code |= tree.code
        owners |= dict.fromkeys((*tree.wheels, *tree.libraries, *tree.pythons), owner)
    return whole, owners


def _remove(found: dict[str, V], gone: str) -> None:
    below = f"{gone.rstrip('/')}/"
    for path in tuple(found):
        if path == gone or path.startswith(below):
            del found[path]
