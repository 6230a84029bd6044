"""The registry client and promotion against a real registry, and a proxy that breaks things."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from registry_proxy import Fault, Proxy

from gpulayers import publish
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import (
    Index,
    Manifest,
    Patience,
    Registry,
    RegistryError,
    Trouble,
    digest_of,
)
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.refs import ImageRef, Platform

pytestmark = pytest.mark.engine
Docker = Callable[..., Finished]
AMD64 = Platform.parse("linux/amd64")


@pytest.fixture
def client() -> Iterator[Registry]:
    with Registry(patience=Patience(first_s=0.01)) as registry:
        yield registry


@pytest.fixture
def name(registry: str) -> str:
    """A repository of this test alone."""
    return f"{registry}/registry-test/{uuid.uuid4().hex[:12]}"


def push(client: Registry, name: str, tag: str, content: bytes = b"a layer") -> ImageRef:
    """Push a small image by hand and return it by digest."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "made": content.hex()}).encode()
    blobs = [(client.put_blob(name, raw), len(raw)) for raw in (config, content)]
    kinds = ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar")
    first, second = (
        {"mediaType": kind, "digest": digest, "size": size}
        for kind, (digest, size) in zip(kinds, blobs, strict=True)
    )
    document = {
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": first, "layers": [second]
    }  # fmt: skip
    ref = ImageRef.parse(f"{name}:{tag}")
    return ref.with_digest(client.put_manifest(ref, json.dumps(document).encode(), OCI_MANIFEST))


def build(docker: Docker, folder: Path, ref: ImageRef, *flags: str) -> str:
    """Build and push a one-layer image with the real builder; what stands under the tag then."""
    (folder / "Dockerfile").write_text('FROM scratch\nCOPY hello /\nLABEL a="b"\nUSER 1000:0\n')
    (folder / "hello").write_text("hello")
    docker("buildx", "build", "--push", "--tag", ref.format(), *flags, str(folder))
    return inspect(docker, ref)


def inspect(docker: Docker, ref: ImageRef) -> str:
    """The digest of the bytes that Docker's own client sees under a reference."""
    seen = docker("buildx", "imagetools", "inspect", "--raw", ref.format())
    return digest_of(seen.stdout.encode())


def test_an_index_with_an_attestation_is_read_for_its_platform(
    client: Registry, name: str, docker: Docker, tmp_path: Path
) -> None:
    ref = ImageRef.parse(f"{name}:plain")
    build(docker, tmp_path, ref, "--provenance=mode=min", "--platform=linux/amd64")
    top = client.raw(ref)
    assert isinstance(top, Index)
    assert (len(top.manifests), len(top.images)) == (2, 1)
    image = client.manifest(ref, AMD64)
    assert image.digest == top.images[0].digest
    config = client.config(ref, image)
    assert (config.labels, config.user, config.architecture) == ({"a": "b"}, "1000:0", "amd64")
    assert len(config.diff_ids) == len(image.layers) == 1
    with pytest.raises(RegistryError, match="found linux/amd64"):
        client.manifest(ref, Platform.parse("linux/arm64"))


@pytest.mark.parametrize("provenance", ["false", "mode=min"], ids=["manifest", "index"])
def test_promotion_keeps_the_digest_of_what_was_built(
    client: Registry, name: str, docker: Docker, tmp_path: Path, provenance: str
) -> None:
    staged = ImageRef.parse(f"{name}:{publish.staging_tag('0' * 64)}")
    digest = build(docker, tmp_path, staged, f"--provenance={provenance}", "--platform=linux/amd64")
    assert client.resolve(staged) == digest
    assert isinstance(client.raw(staged), Manifest if provenance == "false" else Index)
    tags = publish.tags_for("app", "edge", digest, ("edge", "stable"))
    moved = publish.promote(client, staged.with_digest(digest), tags)
    assert [inspect(docker, ref) for ref in moved] == [digest, digest]
    assert client.tags(name) == tuple(sorted((staged.tag, *tags)))


def test_a_content_tag_that_is_taken_moves_nothing(client: Registry, name: str) -> None:
    first, second = push(client, name, "a", b"first"), push(client, name, "b", b"second")
    content = "app-0123456789ab"
    publish.promote(client, first, [content])
    with pytest.raises(RegistryError, match="no tag was moved"):
        publish.promote(client, second, [content, "app-edge"])
    assert client.resolve(first.with_tag("app-edge")) is None


def test_a_channel_moves_from_one_image_to_the_next(client: Registry, name: str) -> None:
    first, second = push(client, name, "a", b"first"), push(client, name, "b", b"second")
    for image in (first, second, second):
        publish.promote(client, image, ["app-edge"])
        assert client.resolve(image.with_tag("app-edge")) == image.digest


def test_a_hundred_references_are_looked_up_at_once(client: Registry, name: str) -> None:
    image = push(client, name, "a")
    publish.promote(client, image, [f"t{number}" for number in range(60)])
    start = time.monotonic()
    found = client.resolve_many([image.with_tag(f"t{number}") for number in range(100)])
    seconds = time.monotonic() - start
    assert list(found.values()) == [image.digest] * 60 + [None] * 40
    assert seconds < 5, f"{seconds:.2f} s; on a quiet machine it takes a quarter of a second"


def test_deleting_takes_all_tags_of_a_digest(client: Registry, name: str) -> None:
    image = push(client, name, "a")
    assert client.delete_manifest(image)
    assert not client.delete_manifest(image)
    assert client.resolve(image.with_tag("a")) is None


def test_a_free_registry_lets_in_and_takes_pushes(
    client: Registry, registry: str, name: str
) -> None:
    assert client.ping(registry)
    assert client.can_push(name)
    assert client.tags(name) == ()


FAULTS = {
    "503": Fault(method="PUT", status=503),
    "429": Fault(method="PUT", status=429, headers={"Retry-After": "0"}),
    "hang-up": Fault(method="PUT", status=-1),
    "hang-up after it acted": Fault(method="PUT", status=-2),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_promotion_outlives_a_passing_fault(
    client: Registry, registry: str, name: str, fault: Fault
) -> None:
    image = push(client, name, "a")
    with Proxy(registry, fault) as proxy:
        behind = ImageRef.parse(image.format().replace(registry, proxy.host))
        publish.promote(client, behind, ["app-edge"])
        assert [line.partition(" ")[0] for line in proxy.asked] == [
            "GET", "HEAD", "PUT", "PUT", "HEAD"
        ]  # fmt: skip
    assert client.resolve(image.with_tag("app-edge")) == image.digest


def test_a_blob_cut_in_the_middle_is_read_again_whole(
    client: Registry, registry: str, name: str
) -> None:
    content = b"0123456789" * 5000
    image = push(client, name, "a", content)
    with Proxy(registry, Fault(method="GET", status=0)) as proxy:
        behind = ImageRef.parse(f"{image.name.replace(registry, proxy.host)}")
        assert client.blob(behind, digest_of(content)) == content
        assert len(proxy.asked) == 2


def test_a_denial_in_the_middle_is_not_retried_and_names_what_moved(
    client: Registry, registry: str, name: str
) -> None:
    image = push(client, name, "a")
    denial = json.dumps({"errors": [{"code": "DENIED", "message": "not yours"}]}).encode()
    with Proxy(registry) as proxy:
        behind = ImageRef.parse(image.format().replace(registry, proxy.host))
        publish.promote(client, behind, ["app-0123456789ab"])
        proxy.faults.append(Fault(method="PUT", status=403, body=denial))
        with pytest.raises(RegistryError, match=r"DENIED: not yours.*moved: none") as caught:
            publish.promote(client, behind, ["app-0123456789ab", "app-edge"])
        assert sum(line.startswith("PUT") for line in proxy.asked) == 2
    assert caught.value.trouble is Trouble.AUTH_DENIED


def test_a_body_that_is_too_large_for_a_proxy_is_refused_once_and_named(
    client: Registry, registry: str, name: str
) -> None:
    with Proxy(registry, Fault(method="PUT", status=413)) as proxy:
        behind = name.replace(registry, proxy.host)
        with pytest.raises(RegistryError, match=f"{digest_of(b'big')} .3 bytes") as caught:
            client.put_blob(behind, b"big")
        assert sum(line.startswith("PUT") for line in proxy.asked) == 1
    assert caught.value.trouble is Trouble.TOO_BIG
