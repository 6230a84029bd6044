"""A registry without sockets: answers from a table, and keeps what it was asked."""

import json
import threading

from gpulayers.engine.registry import Patience, Registry, Request, Response, digest_of
from gpulayers.engine.registry.model import OCI_INDEX, OCI_MANIFEST
from gpulayers.refs import ImageRef

HOST = "127.0.0.1:5000"
ROOT = f"http://{HOST}/v2"
REF = ImageRef.parse(f"{HOST}/team/app:one")
CONFIG = json.dumps({"architecture": "amd64", "os": "linux"}).encode()


def descriptor(raw: bytes, media_type: str, **more: object) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest_of(raw), "size": len(raw), **more}


def manifest_of(config: bytes, *layers: bytes) -> bytes:
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": descriptor(config, "application/vnd.oci.image.config.v1+json"),
        "layers": [descriptor(layer, "application/vnd.oci.image.layer.v1.tar") for layer in layers],
    }
    return json.dumps(document, indent=1).encode()


MANIFEST = manifest_of(CONFIG, b"base", b"wheels")
PROVENANCE = manifest_of(b"{}", b"provenance")
INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [
            descriptor(
                PROVENANCE,
                OCI_MANIFEST,
                platform={"os": "unknown", "architecture": "unknown"},
                annotations={"vnd.docker.reference.type": "attestation-manifest"},
            ),
            descriptor(MANIFEST, OCI_MANIFEST, platform={"os": "linux", "architecture": "amd64"}),
        ],
    }
).encode()


def answer(status: int, body: bytes = b"", **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, headers=names, body=body)


def held(raw: bytes, media_type: str = OCI_MANIFEST) -> Response:
    return answer(200, raw, content_type=media_type, docker_content_digest=digest_of(raw))


def refusal(status: int, code: str, message: str, **headers: str) -> Response:
    body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
    return answer(status, body, **headers)


class FakeTransport:
    """Answers from a table; the last answer of a list stays; keeps what it was asked."""

    def __init__(self, table: dict[str, Response | list[Response | Exception]]) -> None:
        self.table = {
            key: value if isinstance(value, list) else [value] for key, value in table.items()
        }
        self.asked: list[Request] = []
        self.closed = False
        self._lock = threading.Lock()

    def send(self, request: Request) -> Response:
        with self._lock:
            self.asked.append(request)
            answers = self.table.get(f"{request.method} {request.url}", [answer(404)])
            found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        self.closed = True

    def lines(self) -> list[str]:
        return [f"{each.method} {each.url}" for each in self.asked]


def client(transport: FakeTransport, *, waits: list[float] | None = None) -> Registry:
    slept: list[float] = [] if waits is None else waits
    return Registry(transport=transport, patience=Patience(sleep=slept.append), insecure=())
