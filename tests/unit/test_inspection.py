"""What is inside an image is read from its layers' bytes, and from what is said of it."""

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import registry_fakes as fakes
from elf_samples import entry, shared_object

from gpulayers import inspection
from gpulayers.cli import inspecting
from gpulayers.engine.registry import Descriptor, RegistryError, Response, digest_of
from gpulayers.engine.registry.documents import parse_config
from gpulayers.engine.registry.model import OCI_INDEX
from gpulayers.errors import RemoteError
from gpulayers.fatbin import EXACT
from gpulayers.inspection import Inspected, Subject, tree
from gpulayers.inspection.source import read_saved
from gpulayers.inspection.tree import UnreadableError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SITE = "opt/venv/lib/python3.11/site-packages"
NUMPY = f"{SITE}/numpy-2.3.5.dist-info/METADATA"
CUDART = f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"
CONFIG = {
    "architecture": "amd64",
    "os": "linux",
    "config": {
        "User": "10001:0",
        "Env": ["PATH=/bin", "HF_TOKEN=hush"],
        "Entrypoint": ["tini", "--"],
        "Cmd": ["python"],
        "Labels": {"io.gpulayers.key": "a" * 64, "io.gpulayers.wheel.nvidia-nccl-cu12": "2.27"},
    },
    "history": [
        {"created_by": "ADD base.tar / # buildkit"},
        {"created_by": "ENV A=1", "empty_layer": True},
        {"created_by": "/bin/sh -c #(nop) COPY   file:1 in / "},
    ],
}


def tar(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return data.getvalue()


def metadata(name: str, version: str) -> bytes:
    return (
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nName: in the text\n".encode()
    )


def pieces(data: bytes, size: int = 700) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


PACKINGS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, zstd.compress]


@pytest.mark.parametrize("pack", PACKINGS, ids=["plain", "gzip", "zstd"])
def test_packages_libraries_and_pythons_are_seen(pack: Callable[[bytes], bytes]) -> None:
    files = {
        f"./{NUMPY}": metadata("numpy", "2.3.5"),
        CUDART: b"x" * 5000,
        "usr/lib/x86_64-linux-gnu/libcuda.so.1": b"xx",
        "usr/lib/libcudnn_ops.so.9.1.0": b"x",
        "usr/lib/libcrypt.so.1": b"x",
        "opt/python/lib/python3.11/os.py": b"",
        "other/python3.9/os.py": b"",
    }
    found = tree.read(pieces(pack(tar(files))))
    assert found.wheels == {NUMPY: ("numpy", "2.3.5")}
    assert found.libraries == {
        CUDART: 5000,
        "usr/lib/x86_64-linux-gnu/libcuda.so.1": 2,
        "usr/lib/libcudnn_ops.so.9.1.0": 1,
    }
    assert found.pythons == {"opt/python/lib/python3.11": "3.11"}


def test_a_link_is_no_library() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        link = tarfile.TarInfo("usr/lib/libcudart.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libcudart.so.12"
        archive.addfile(link)
    assert tree.read(pieces(data.getvalue())).libraries == {}


@pytest.mark.parametrize(
    "data",
    [
        b"no tar at all " * 100,
        gzip.compress(b"no tar " * 200),
        gzip.compress(tar({"a": b"x"}))[:40],
    ],
    ids=["plain", "gzip of another thing", "cut off"],
)
def test_what_is_no_layer_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        tree.read(pieces(data))


def test_an_empty_layer_is_fine() -> None:
    assert tree.read(pieces(tar({}))) == tree.Tree()


@pytest.mark.parametrize(
    "gone",
    [
        f"{SITE}/.wh.numpy-2.3.5.dist-info",
        f"{SITE}/numpy-2.3.5.dist-info/.wh..wh..opq",
        f"{SITE}/numpy-2.3.5.dist-info/.wh.METADATA",
        "opt/.wh.venv",
        ".wh.opt",
    ],
)
def test_what_a_layer_above_removed_is_gone(gone: str) -> None:
    below = tree.read(pieces(tar({NUMPY: metadata("numpy", "2.3.5"), "opt2/x": b""})))
    above = tree.read(
        pieces(tar({gone: b"", f"{SITE}/new.dist-info/METADATA": metadata("n", "1")}))
    )
    whole, owners = tree.merged([("below", below), ("above", above)])
    assert list(whole.wheels.values()) == [("n", "1")]
    assert owners[f"{SITE}/new.dist-info/METADATA"] == "above"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"Name: a\r\nVersion: 1\r\n\r\n", ("a", "1")),
        (b"", ("", "")),
        (b"\xff\xfe\x00", ("", "")),
    ],
)
def test_metadata_is_read_as_it_comes(data: bytes, wanted: tuple[str, str]) -> None:
    assert tree.parse_metadata(data) == wanted


LAYERS = (
    tar({"usr/lib/python3.11/os.py": b"", "usr/lib/libcuda.so.1": b"xx"}),
    zstd.compress(tar({NUMPY: metadata("numpy", "2.3.5"), CUDART: b"x" * 300})),
)


def subject(*layers: bytes, config: object = CONFIG) -> Subject:
    blobs = {digest_of(layer): layer for layer in layers}
    return Subject(
        name="r.example/app",
        digest=f"sha256:{'0' * 64}",
        config=parse_config(json.dumps(config).encode(), where="test"),
        layers=tuple(blob(layer) for layer in layers),
        open=lambda layer: pieces(blobs[layer.digest]),
    )


def blob(data: bytes) -> Descriptor:
    return Descriptor(
        media_type="x", digest=digest_of(data), size_bytes=len(data), platform=None, annotations={}
    )


def examined(cap_bytes: int | None = None, **more: object) -> Inspected:
    return inspection.examine(subject(*LAYERS), cap_bytes=cap_bytes, **more)  # type: ignore[arg-type]


def test_an_image_is_examined_whole() -> None:
    found = examined(sbom={"numpy": "0", "fastrlock": "0.8"})
    assert [layer.owner for layer in found.layers] == ["ADD base.tar /", "COPY file:1 in /"]
    assert [(w.name, w.version, w.source) for w in found.wheels] == [
        ("fastrlock", "0.8", "sbom"),
        ("numpy", "2.3.5", "files"),
        ("nvidia-nccl-cu12", "2.27", "label"),
    ]
    assert [(lib.path, lib.is_driver) for lib in found.libraries] == [
        (CUDART, False),
        ("usr/lib/libcuda.so.1", True),
    ]
    assert found.libraries[0].owner == "COPY file:1 in /"
    assert found.pythons == {"usr/lib/python3.11": "3.11"}
    assert (found.key, found.user, found.command) == ("a" * 64, "10001:0", ("python",))
    assert "hush" not in json.dumps(inspection.format_json(found))


def test_steps_name_the_layers_where_they_are_known() -> None:
    assert [layer.owner for layer in examined(steps=("base", "numpy")).layers] == ["base", "numpy"]


def test_big_layers_are_not_read_unless_asked_for() -> None:
    read: list[str] = []
    small = len(LAYERS[1])
    found = examined(cap_bytes=small, on_layer=lambda layer: read.append(layer.digest))
    assert [layer.unread for layer in found.layers] == ["more than 0 MB", ""]
    assert read == [digest_of(LAYERS[1])]
    assert {layer.unread for layer in examined(cap_bytes=0).layers} == {"not asked for"}


def test_people_see_layers_packages_and_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    inspecting._show(examined(cap_bytes=0, sbom={"numpy": "2.3.5"}))
    first = capsys.readouterr().out
    assert "ours        key aaaaaaaaaaaa\n" in first
    assert "  0.0 MB  ADD base.tar /  (not asked for: not read)\n" in first
    assert "  numpy 2.3.5  (a scan says so)\n" in first
    assert "CUDA libraries: none found\n" in first
    inspecting._show(examined())
    second = capsys.readouterr().out
    assert "python      3.11 (/usr/lib/python3.11)\n" in second
    assert "/usr/lib/libcuda.so.1  part of a driver: it hides the host's own\n" in second
    assert "  numpy 2.3.5  in COPY file:1 in /\n" in second
    assert "hush" not in first + second


def test_a_layer_that_is_no_tar_is_told_and_stops_nothing() -> None:
    broken = subject(b"no tar" * 200, LAYERS[1])
    found = inspection.examine(broken, cap_bytes=None)
    assert found.layers[0].unread.startswith("unreadable: ")
    assert [wheel.name for wheel in found.wheels if wheel.source == "files"] == ["numpy"]


def test_an_image_that_docker_saved_is_read_from_its_file(tmp_path: Path) -> None:
    config = json.dumps(CONFIG).encode()
    paths = {f"blobs/sha256/{digest_of(raw)[7:]}": raw for raw in (config, *LAYERS)}
    names = list(paths)
    table = [{"Config": names[0], "Layers": names[1:]}]
    file = tmp_path / "image.tar"
    file.write_bytes(tar({**paths, "manifest.json": json.dumps(table).encode()}))
    found = inspection.examine(read_saved(file, "mine:one"), cap_bytes=None)
    assert (found.name, found.digest, found.user) == ("mine:one", "", "10001:0")
    assert [layer.digest for layer in found.layers] == [digest_of(layer) for layer in LAYERS]
    assert [lib.path for lib in found.libraries] == [CUDART, "usr/lib/libcuda.so.1"]


def test_a_saved_file_without_an_image_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "image.tar"
    file.write_bytes(tar({"a": b""}))
    with pytest.raises(RemoteError, match="wanted config and layers"):
        read_saved(file, "mine:one")


def in_registry(*answers: Response, data: bytes) -> tuple[list[bytes], list[str]]:
    url = f"GET {fakes.ROOT}/team/app/blobs/{digest_of(data)}"
    transport = fakes.FakeTransport({url: list(answers)})
    parts = list(fakes.client(transport).stream(fakes.REF, blob(data), part_bytes=4))
    return parts, [request.headers["Range"] for request in transport.asked]


def test_a_blob_comes_in_parts() -> None:
    parts, ranges = in_registry(
        fakes.answer(206, b"0123"),
        fakes.answer(206, b"4567"),
        fakes.answer(206, b"89"),
        data=b"0123456789",
    )
    assert b"".join(parts) == b"0123456789"
    assert ranges == ["bytes=0-3", "bytes=4-7", "bytes=8-9"]


def test_a_registry_that_gives_all_at_once_is_asked_once() -> None:
    parts, ranges = in_registry(fakes.answer(200, b"0123456789"), data=b"0123456789")
    assert (parts, len(ranges)) == ([b"0123456789"], 1)


@pytest.mark.parametrize(
    "answers",
    [(fakes.answer(206, b"0123"), fakes.answer(206, b"45xx")), (fakes.answer(206, b""),)],
    ids=["other bytes", "no bytes"],
)
def test_a_blob_that_is_another_is_refused(answers: tuple[Response, ...]) -> None:
    with pytest.raises(RegistryError, match="wanted sha256:"):
        in_registry(*answers, data=b"01234567")


def test_of_an_index_the_image_of_the_platform_is_taken() -> None:
    transport = fakes.FakeTransport(
        {
            f"GET {fakes.ROOT}/team/app/manifests/one": fakes.held(fakes.INDEX, OCI_INDEX),
            f"GET {fakes.ROOT}/team/app/manifests/{digest_of(fakes.MANIFEST)}": fakes.held(
                fakes.MANIFEST
            ),
            f"GET {fakes.ROOT}/team/app/blobs/{digest_of(fakes.CONFIG)}": fakes.answer(
                200, fakes.CONFIG
            ),
        }
    )
    found = inspection.of_registry(fakes.client(transport), fakes.REF, "linux/arm64")
    assert found.digest == digest_of(fakes.MANIFEST), "the only one that there is"
    assert len(found.layers) == 2


TORCH = f"{SITE}/torch/lib/libtorch_cuda.so"
RELEASE = b"GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\n"


def test_gpu_code_is_read_where_it_is_asked_for_and_not_of_what_was_removed() -> None:
    library = shared_object([entry(2, 80), entry(2, 90, EXACT)], [entry(1, 90)]).ljust(5000, b"\0")
    whole = {TORCH: library, f"{SITE}/torch/x.py": b"x" * 5000, "usr/bin/tool": library[:4999]}
    assert tree.read([tar(whole)]).code == {}
    found = tree.read([tar(whole)], with_code=True)
    assert {path: (c.sms, c.exact_sms, c.ptx) for path, c in found.code.items()} == {
        TORCH: ({80}, {90}, {90}),
        "usr/bin/tool": ({80}, {90}, {90}),
    }
    above = tree.read([tar({f"{SITE}/.wh.torch": b""})])
    assert set(tree.merged([("", found), ("", above)])[0].code) == {"usr/bin/tool"}


@pytest.mark.parametrize("cut", [1, 60, 100, 300])
def test_a_library_with_a_hole_is_no_error(cut: int) -> None:
    library = shared_object([entry(2, 80)]).ljust(5000, b"\0")
    broken = (library[:64] + library[64 + cut :]).ljust(5000, b"\0")
    files = {"a.so": broken, "b.so": library}
    assert "b.so" in tree.read([tar(files)], with_code=True).code


def test_glibc_and_the_os_are_read_of_their_own_files() -> None:
    files = {
        "usr/lib/x86_64-linux-gnu/libc.so.6": b"\x7fELF" + RELEASE,
        "usr/lib/os-release": b'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n',
        "opt/other/libc.so.6": b"not glibc",
    }
    found = tree.read([tar(files)])
    assert set(found.libcs.values()) == {"2.36"}
    assert found.systems == {"usr/lib/os-release": "ubuntu22.04"}
    assert tree.parse_system(b"ID=arch\n") == "arch"
    assert tree.parse_system(b"PRETTY_NAME=x\n") == ""
