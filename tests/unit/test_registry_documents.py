"""A registry's JSON becomes our types, or a sentence about what is wrong with it."""

import json

import pytest

from gpulayers.engine.registry import Index, Manifest, RegistryError, Trouble, digest_of
from gpulayers.engine.registry.documents import (
    parse_config,
    parse_document,
    parse_errors,
    parse_tags,
)
from gpulayers.engine.registry.model import DOCKER_INDEX, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from gpulayers.refs import Platform

DIGEST = digest_of(b"x")
SCHEMA_1 = "application/vnd.docker.distribution.manifest.v1+prettyjws"
ENTRY: dict[str, object] = {"mediaType": "m", "digest": DIGEST, "size": 3}


def document(**fields: object) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("media_type", [OCI_MANIFEST, DOCKER_MANIFEST])
def test_a_manifest_keeps_its_bytes_and_the_order_of_its_layers(media_type: str) -> None:
    layers = [{**ENTRY, "size": size} for size in (5, 1, 3)]
    raw = document(config=ENTRY, layers=layers, annotations={"a": "b"})
    found = parse_document(raw, f"{media_type}; charset=utf-8", where="here")
    assert isinstance(found, Manifest)
    assert (found.raw, found.digest, found.media_type) == (raw, digest_of(raw), media_type)
    assert [layer.size_bytes for layer in found.layers] == [5, 1, 3]
    assert found.annotations == {"a": "b"}


@pytest.mark.parametrize("media_type", [OCI_INDEX, DOCKER_INDEX])
def test_an_index_tells_images_from_attestations(media_type: str) -> None:
    entries = [
        {**ENTRY, "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}},
        {**ENTRY, "platform": {"os": "unknown", "architecture": "unknown"}},
        {**ENTRY, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}},
    ]
    found = parse_document(document(mediaType=media_type, manifests=entries), "", where="here")
    assert isinstance(found, Index)
    assert len(found.manifests) == 3
    assert [each.platform for each in found.images] == [Platform("linux", "arm64")]


WRONG = {
    "schema-1": (document(schemaVersion=1), SCHEMA_1, "wanted an OCI or Docker v2"),
    "no-type": (document(), "", "found no media type"),
    "not-json": (b"<html>", OCI_MANIFEST, "wanted JSON, found 6 bytes"),
    "a-list": (b"[]", OCI_MANIFEST, "wanted a JSON object, found list"),
    "no-config": (
        document(layers=[]),
        OCI_MANIFEST,
        "config: wanted a JSON object, found NoneType",
    ),
    "bad-digest": (document(config={**ENTRY, "digest": "md5:1"}), OCI_MANIFEST, "found 'md5:1'"),
    "bad-size": (
        document(config={**ENTRY, "size": True}),
        OCI_MANIFEST,
        "a count of bytes, found True",
    ),
    "layers-table": (document(config=ENTRY, layers={}), OCI_MANIFEST, "layers: wanted a list"),
    "annotation-number": (
        document(config=ENTRY, annotations={"a": 1}),
        OCI_MANIFEST,
        "annotations: wanted texts",
    ),
}


@pytest.mark.parametrize(("raw", "media_type", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_manifest_says_where_and_what(raw: bytes, media_type: str, words: str) -> None:
    with pytest.raises(RegistryError) as caught:
        parse_document(raw, media_type, where="r.lan/a:b")
    assert str(caught.value).startswith("r.lan/a:b")
    assert words in str(caught.value)
    assert caught.value.trouble is Trouble.UNREADABLE


def test_a_config_is_read_whole() -> None:
    raw = document(
        architecture="amd64",
        os="linux",
        created="1970-01-01T00:00:00Z",
        config={
            "Env": ["PATH=/bin", "OPTS=a=b", "PATH=/usr/bin"],
            "Labels": {"io.gpulayers.key": "k"},
            "User": "1000:0",
            "WorkingDir": "/work",
            "Entrypoint": ["tini", "--"],
            "Cmd": None,
        },
        rootfs={"type": "layers", "diff_ids": [DIGEST]},
        history=[{"created_by": "RUN x"}, {"empty_layer": True}],
    )
    found = parse_config(raw, where="here")
    assert found.env == {"PATH": "/usr/bin", "OPTS": "a=b"}
    assert found.labels == {"io.gpulayers.key": "k"}
    assert (found.user, found.working_dir, found.created) == (
        "1000:0",
        "/work",
        "1970-01-01T00:00:00Z",
    )
    assert (found.entrypoint, found.cmd, found.diff_ids) == (("tini", "--"), (), (DIGEST,))
    assert (found.history, found.history_count) == (("RUN x", ""), 2)


def test_an_artifacts_empty_config_is_an_empty_config() -> None:
    found = parse_config(b"{}", where="here")
    assert (found.architecture, found.os, found.env, found.history) == ("", "", {}, ())


def test_a_config_with_a_text_where_a_list_belongs_is_refused() -> None:
    with pytest.raises(RegistryError, match="here: Env: wanted a list, found str"):
        parse_config(document(config={"Env": "A=b"}), where="here")


def test_tags_may_be_null() -> None:
    assert parse_tags(b'{"name": "a", "tags": null}', where="here") == ()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"errors":[{"code":"A","message":"b"},{"code":"C"}]}', "A: b; C"),
        (b"<html>\n <b>no</b></html>", "<html> <b>no</b></html>"),
        (b'{"errors":[]}', '{"errors":[]}'),
        (b'{"errors":[1]}', '{"errors":[1]}'),
        (b"", ""),
    ],
)
def test_an_error_answer_becomes_one_line(raw: bytes, text: str) -> None:
    assert parse_errors(raw) == text
