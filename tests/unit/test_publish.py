"""Promotion moves names, never bytes; budgets name what is over them."""

import pytest

from gpulayers import publish
from gpulayers.engine.registry import Descriptor, Manifest, RegistryError, Trouble, digest_of
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.errors import ProjectError
from gpulayers.matrix.model import Budget
from gpulayers.refs import ImageRef

RAW = b'{"any": "bytes",\n  "kept": true}'
DIGEST = digest_of(RAW)
OTHER = digest_of(b"another image")
SOURCE = ImageRef.parse(f"r.lan:5000/team/app@{DIGEST}")
CHANNELS = ("edge", "stable")
CONTENT = "torch2.8-cu128-0123456789ab"


def blob(size_bytes: int, name: str = "") -> Descriptor:
    return Descriptor(
        media_type="",
        digest=digest_of((name or str(size_bytes)).encode()),
        size_bytes=size_bytes,
        platform=None,
        annotations={},
    )


def manifest(*layers: Descriptor) -> Manifest:
    return Manifest(
        raw=RAW,
        media_type=OCI_MANIFEST,
        digest=DIGEST,
        config=blob(1, "config"),
        layers=layers,
        annotations={},
    )


class FakeRegistry:
    """Tags and their digests; keeps what was written, and may refuse or misplace a tag."""

    def __init__(self, *, refuses: str = "", misplaces: str = "", **tags: str) -> None:
        self.tags = tags
        self.refuses = refuses
        self.misplaces = misplaces
        self.written: list[tuple[str, bytes, str]] = []

    def resolve(self, ref: ImageRef) -> str | None:
        return self.tags.get(ref.tag)

    def raw(self, ref: ImageRef) -> Manifest:
        assert ref == SOURCE
        return manifest()

    def put_manifest(self, ref: ImageRef, raw: bytes, media_type: str) -> str:
        if ref.tag == self.refuses:
            msg = f"cannot write {ref.format()}"
            raise RegistryError(msg, trouble=Trouble.AUTH_DENIED, status=401, hint="docker login")
        self.written.append((ref.tag, raw, media_type))
        self.tags[ref.tag] = OTHER if ref.tag == self.misplaces else digest_of(raw)
        return digest_of(raw)


def test_every_tag_gets_the_very_bytes_content_tags_first() -> None:
    registry = FakeRegistry(edge=OTHER)
    moved = publish.promote(registry, SOURCE, ["edge", CONTENT])
    assert moved == (SOURCE.with_tag("edge"), SOURCE.with_tag(CONTENT))
    assert registry.written == [(CONTENT, RAW, OCI_MANIFEST), ("edge", RAW, OCI_MANIFEST)]


def test_a_tag_that_points_there_already_is_not_written() -> None:
    registry = FakeRegistry(**{CONTENT: DIGEST, "edge": DIGEST})
    assert len(publish.promote(registry, SOURCE, [CONTENT, "edge"])) == 2
    assert registry.written == []


def test_a_content_tag_with_another_digest_stops_all_before_the_first_write() -> None:
    registry = FakeRegistry(**{CONTENT: OTHER})
    with pytest.raises(RegistryError, match="no tag was moved") as caught:
        publish.promote(registry, SOURCE, ["edge", CONTENT])
    assert caught.value.trouble is Trouble.IMMUTABLE_TAG
    assert OTHER in str(caught.value)
    assert registry.written == []


def test_a_write_refused_half_way_names_what_moved_and_what_did_not() -> None:
    registry = FakeRegistry(refuses="edge")
    with pytest.raises(RegistryError, match=f"moved: {CONTENT}; not moved: edge") as caught:
        publish.promote(registry, SOURCE, ["edge", CONTENT])
    assert (caught.value.trouble, caught.value.hint) == (Trouble.AUTH_DENIED, "docker login")


def test_a_tag_that_points_elsewhere_afterwards_is_an_error() -> None:
    registry = FakeRegistry(misplaces="edge")
    with pytest.raises(RegistryError, match=f"after the promotion, found {OTHER}"):
        publish.promote(registry, SOURCE, ["edge"])


def test_only_a_digest_can_be_promoted() -> None:
    with pytest.raises(RegistryError, match="wanted a digest, found a tag"):
        publish.promote(FakeRegistry(), SOURCE.with_tag("edge"), ["stable"])


@pytest.mark.parametrize(
    ("channel", "channels", "moving"),
    [
        ("edge", CHANNELS, "app-edge"),
        ("stable", CHANNELS, "app"),
        ("beta", ("edge", "beta", "stable"), "app-beta"),
        ("only", ("only",), "app"),
    ],
)
def test_the_highest_channel_is_the_bare_tag(
    channel: str, channels: tuple[str, ...], moving: str
) -> None:
    key = "0123456789abcdef"
    assert publish.tags_for("app", channel, key, channels) == ("app-0123456789ab", moving)


def test_an_unknown_channel_names_the_known_ones() -> None:
    with pytest.raises(ProjectError, match="edge, stable, found 'beta'"):
        publish.tags_for("app", "beta", "0123456789ab", CHANNELS)


def test_a_tag_beyond_128_characters_is_refused() -> None:
    with pytest.raises(ProjectError, match="129 characters"):
        publish.tags_for("a" * 116, "stable", "0123456789ab", CHANNELS)


def test_a_staging_tag_is_made_of_the_key_and_may_move() -> None:
    assert publish.staging_tag(f"sha256:{'ab' * 32}") == "staging-abababababab"
    assert not publish.is_content_tag(publish.staging_tag("0123456789ab"))
    assert publish.is_content_tag(CONTENT)
    assert not publish.is_content_tag("torch2.8-cu128-edge")


def test_sizes_at_the_limit_pass() -> None:
    image = manifest(blob(2_000_000 - 1), blob(1_000_000))
    assert publish.check_limits(image, layer_mb=2, image_mb=3) == ()


def test_what_is_over_is_named_with_its_size_and_limit() -> None:
    image = manifest(blob(1_000_000), blob(2_000_001))
    layer, whole = publish.size_violations(image, Budget(layer_mb=2, image_mb=3))
    assert layer.startswith(f"layer 2 of 2 ({image.layers[1].digest}) weighs 2.1 MB")
    assert whole == "the image weighs 3.1 MB, over the image budget of 3 MB"


def test_a_layer_that_comes_twice_is_weighed_once_and_no_limit_is_no_limit() -> None:
    image = manifest(blob(2_000_000), blob(2_000_000))
    assert publish.check_limits(image, layer_mb=None, image_mb=3) == ()
    assert publish.check_limits(image, layer_mb=None, image_mb=None) == ()
