"""Images put together: the config and manifest as BuildKit writes them, and what is left to it."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from lock_samples import first
from registry_fakes import HOST, ROOT, FakeTransport, answer, client, held

from gpulayers.compose import Composer, config
from gpulayers.compose.config import Unlike
from gpulayers.engine.registry import RegistryError
from gpulayers.engine.registry.documents import parse_config, parse_document
from gpulayers.engine.registry.model import OCI_MANIFEST, Descriptor, Manifest, digest_of
from gpulayers.matrix.model import HealthCheck
from gpulayers.plan.model import Config

DIGEST = "sha256:" + "a" * 64
# As BuildKit 0.25 wrote it for a base with a COPY, an ENV and a WORKDIR.
BASE: dict[str, Any] = {
    "architecture": "amd64",
    "config": {"Env": ["PATH=/usr/bin:/bin", "Z=1"], "WorkingDir": "/srv"},
    "created": "2026-12-07T09:42:10.361452001Z",
    "history": [
        {"created": "2026-12-07T09:42:10.028397861Z", "created_by": "COPY a /a # buildkit"},
        {"created": "2026-12-07T09:42:10Z", "created_by": "ENV Z=1", "empty_layer": True},
    ],
    "os": "linux",
    "rootfs": {"type": "layers", "diff_ids": ["sha256:1"]},
}
WANTED = Config(
    env={"Z": "2", "Q": 'a"b<é'},
    labels={"n": "1"},
    user="1:0",
    entrypoint=("tini", "--"),
    command=("python",),
    ports=("9000/udp", "8080/tcp", "443/tcp"),
    workdir="/opt/x",
    health_check=HealthCheck(
        command=("python", "-c", 'x "y"'), interval_s=30, timeout_s=90, start_s=0, retries=3
    ),
)


def made(base: dict[str, Any], wanted: Config = WANTED) -> str:
    raw = json.dumps(base).encode()
    return config.config(raw, wanted, ["sha256:2", "sha256:3", "sha256:4"], steps=1).decode()


def test_a_config_is_spelled_as_buildkit_spells_it() -> None:
    text = made(BASE)
    assert text.startswith(
        '{"architecture":"amd64","config":{"User":"1:0","ExposedPorts":{"443/tcp":{},"8080/tcp":{},'
        '"9000/udp":{}},"Env":["PATH=/usr/bin:/bin","Z=2","Q=a\\"b\\u003cé"],'
        '"Entrypoint":["tini","--"],"Cmd":["python"],"WorkingDir":"/opt/x","Labels":{"n":"1"},'
        '"ArgsEscaped":true,"Healthcheck":{"Test":["CMD","python","-c","x \\"y\\""],'
        '"Interval":30000000000,"Timeout":90000000000,"Retries":3}},'
        '"created":"1980-01-01T00:00:00Z","history":[{"created":"2026-12-07T09:42:10.028397861Z"'
    )
    assert text.endswith('["sha256:1","sha256:2","sha256:3","sha256:4"]}}')
    assert [entry["created_by"] for entry in json.loads(text)["history"]] == [
        "COPY a /a # buildkit",
        "ENV Z=1",
        "COPY /out/ / # buildkit",
        'ENV Q=a"b<é Z=2',
        "LABEL n=1",
        "WORKDIR /opt/x",
        "EXPOSE [443/tcp 8080/tcp 9000/udp]",
        'HEALTHCHECK &{["CMD" "python" "-c" "x \\"y\\""] "30s" "1m30s" "0s" "0s" \'\\x03\'}',
        "USER 1:0",
        'ENTRYPOINT ["tini" "--"]',
        'CMD ["python"]',
        "COPY /out/ / # buildkit",
    ]


UNLIKE: dict[str, dict[str, Any]] = {
    "onbuild": {"config": {**BASE["config"], "OnBuild": ["RUN x"]}},
    "no-path": {"config": {"Env": ["Z=1"]}},
    "unknown-key": {"variant2": "x"},
    "unknown-setting": {"config": {**BASE["config"], "Runtime": "x"}},
    "history-of-other-layers": {"history": []},
    "another-spelling-of-a-time": {
        "history": [{"created": "2026-12-07T09:42:10.500Z", "created_by": "x"}]
    },
}


@pytest.mark.parametrize("change", UNLIKE.values(), ids=UNLIKE)
def test_what_is_not_known_is_left_to_the_builder(change: dict[str, Any]) -> None:
    with pytest.raises(Unlike):
        made({**BASE, **change})


def test_layers_of_dockers_own_types_become_those_of_oci() -> None:
    layer = Descriptor(
        media_type="application/vnd.docker.image.rootfs.diff.tar.gzip",
        digest=DIGEST,
        size_bytes=5,
        platform=None,
        annotations={},
    )
    text = config.manifest(b"{}", [layer]).decode()
    assert '"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"' in text
    assert text.startswith('{\n  "schemaVersion": 2,\n  "mediaType": "application/vnd.oci')


MOUNT = f"POST {ROOT}/acme/gpu/blobs/uploads/?mount={DIGEST}&from=acme/base"
LOOK = f"HEAD {ROOT}/acme/gpu/blobs/{DIGEST}"


def test_a_blob_is_mounted_once() -> None:
    fake = FakeTransport({LOOK: [answer(404), answer(200)], MOUNT: answer(201)})
    registry = client(fake)
    for _ in range(2):
        assert registry.mount_blob(f"{HOST}/acme/gpu", DIGEST, source=f"{HOST}/acme/base")
    assert fake.lines() == [LOOK, MOUNT, LOOK]


def test_a_registry_that_wants_the_bytes_instead_mounts_nothing_and_keeps_no_upload() -> None:
    place = "/v2/acme/gpu/blobs/uploads/1"
    fake = FakeTransport(
        {
            MOUNT: answer(202, location=place),
            f"DELETE {ROOT}{place.removeprefix('/v2')}": answer(204),
        }
    )
    assert not client(fake).mount_blob(f"{HOST}/acme/gpu", DIGEST, source=f"{HOST}/acme/base")
    assert fake.lines()[-1].startswith("DELETE ")


@pytest.mark.parametrize("is_other", [False, True], ids=["the-very-image", "another"])
def test_an_image_that_the_builder_makes_otherwise_ends_putting_together(is_other: bool) -> None:
    image = first()
    base_config = json.dumps(BASE).encode()
    layer = Descriptor(
        media_type="application/vnd.oci.image.layer.v1.tar+zstd",
        digest=DIGEST,
        size_bytes=5,
        platform=None,
        annotations={},
    )
    base = config.manifest(base_config, [layer])
    table = {
        f"GET {ROOT}/acme/base/manifests/{digest_of(base)}": held(base),
        f"GET {ROOT}/acme/base/blobs/{digest_of(base_config)}": answer(200, base_config),
    }
    count = len(image.steps) + 1
    diff_ids = [f"sha256:{n:064}" for n in range(count)]
    made = config.config(base_config, image.config, diff_ids, steps=len(image.steps))
    raw = config.manifest(made, [layer] * (count + 1)) + (b" " if is_other else b"")
    built = parse_document(raw, OCI_MANIFEST, where="x")
    assert isinstance(built, Manifest)
    said: list[str] = []
    composer = Composer(
        registry=client(FakeTransport({**table})), name=f"{HOST}/acme/gpu", warn=said.append
    )
    based = replace(image, base=f"{HOST}/acme/base@{digest_of(base)}")
    with suppress(RegistryError):  # this registry takes no step
        composer.note(based, built, parse_config(made, where="x"))
    assert composer.is_able(based) is not is_other
    assert [line.partition(":")[0] for line in said] == [based.tag] * is_other
    assert not composer.is_able(replace(image, base=f"r.example/base@{DIGEST}"))
