"""How long it takes to put 500 images on a patched base, against a registry that really runs.

``python3 tools/devenv run -- .venv/bin/python bench/patching.py`` plans 500 images with some 20
steps each, stores a layer for each step in the registry of this checkout, and puts all images on a
base and then on the next one, as ``gpulayers patch`` does before the gates. Layers are small: what
is counted is that none is moved. The figures go to ``bench/results/patching.json``; exit status 1
when a limit is passed. Not measured: the gates, and what a builder would take for the same.
"""

import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from planning import IMAGES, cells_of, ground  # noqa: E402

from gpulayers.compose import Composer  # noqa: E402
from gpulayers.compose.config import manifest as manifest_of  # noqa: E402
from gpulayers.compose.config import part_config  # noqa: E402
from gpulayers.compose.parts import parts_of  # noqa: E402
from gpulayers.engine.registry import Registry, Request, Response, digest_of  # noqa: E402
from gpulayers.engine.registry.model import OCI_MANIFEST, Descriptor  # noqa: E402
from gpulayers.engine.registry.wire import Wire  # noqa: E402
from gpulayers.plan import make  # noqa: E402
from gpulayers.plan.model import Image  # noqa: E402
from gpulayers.refs import ImageRef, Platform  # noqa: E402

RESULT = HERE / "results" / "patching.json"
MOST_S = 60.0
WORKERS = 8
LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Counting(Wire):
    """Counts requests, and the bytes that were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self.sent_bytes = 0

    def send(self, request: Request) -> Response:
        """Send, and count; adding is near enough for threads."""
        self.requests += 1
        self.sent_bytes += len(request.body or b"")
        return super().send(request)


def stored(registry: Registry, ref: ImageRef, text: str, platform: Platform) -> str:
    """Store an image of one small layer, and return its digest."""
    layer = text.encode()
    blob = Descriptor(
        media_type=LAYER,
        digest=registry.put_blob(ref.name, layer),
        size_bytes=len(layer),
        platform=None,
        annotations={},
    )
    config = json.loads(part_config(platform, digest_of(b"unpacked " + layer)))
    config["config"] = {"Env": [PATH]}
    raw = json.dumps(config).encode()
    registry.put_blob(ref.name, raw)
    document = manifest_of(raw, [blob])
    registry.put_manifest(ref, document, OCI_MANIFEST)
    return digest_of(document)


def put(composer: Composer, images: Sequence[Image], base: str) -> list[str]:
    """Put all images on a base; their digests."""

    def one(image: Image) -> str:
        made = composer.compose(replace(image, base=base))
        return made.digest if made is not None else ""

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(one, images))


def measured(registry_host: str) -> dict[str, object]:
    """Put 500 images on a base and on the next one."""
    root = f"{registry_host}/bench-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        place = ground(Path(folder))
        cells = cells_of(place.matrix)
        images = make.make(place, cells[:: len(cells) // IMAGES][:IMAGES]).images
    wire = Counting()
    registry = Registry(transport=wire)
    composer = Composer(registry=registry, name=f"{root}/gpu", warn=print)
    platform = images[0].platform
    keys = {key for image in images for key in parts_of(image)}
    for key in keys:
        stored(registry, composer.parts.ref(key), key, platform)
    bases = [
        f"{root}/base@{stored(registry, ImageRef.parse(f'{root}/base:{n}'), f'base {n}', platform)}"
        for n in range(2)
    ]
    found = []
    for base in bases:
        # As a run of its own, which knows nothing of the one before.
        composer = Composer(registry=registry, name=f"{root}/gpu", warn=print)
        requests, sent, start = wire.requests, wire.sent_bytes, time.perf_counter()
        digests = put(composer, images, base)
        found.append(
            {
                "seconds": round(time.perf_counter() - start, 2),
                "requests": wire.requests - requests,
                "sent_bytes": wire.sent_bytes - sent,
                "images": len(set(digests) - {""}),
            }
        )
    return {
        "images": len(images),
        "steps": len(keys),
        "layers_an_image": statistics.mean(len(parts_of(image)) + 1 for image in images),
        "first_base": found[0],
        "patched_base": found[1],
        "limit_s": MOST_S,
        "threads": WORKERS,
    }


def main() -> int:
    """Measure, write, and judge."""
    host = os.environ.get("GPULAYERS_REGISTRY", "")
    if not host:
        print("no registry: make up, then python3 tools/devenv run -- .venv/bin/python", __file__)
        return 1
    result = measured(host)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    patched = result["patched_base"]
    is_fit = isinstance(patched, dict) and patched["images"] == result["images"]
    return int(not is_fit or patched["seconds"] > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
