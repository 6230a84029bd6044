"""Magika, with the weights that its wheel carries, names contents as it did when it was pinned."""

import json
import os
import sys
from importlib import metadata

from magika import Magika

WHEELS = json.loads(os.environ.get("GPULAYERS_WHEELS", "{}"))
MODEL = "standard_v3_3"
# Label and score of magika 1.0.2 on the CPU of onnxruntime-gpu 1.23.2 (x86_64, read 2026-12-01).
# Scores come from a softmax in binary32: other vector instructions move the last digits only.
TOLERANCE = 1e-3
PYTHON = b"""import os


def main() -> None:
    print(os.getcwd())


if __name__ == '__main__':
    main()
"""
DOCKERFILE = b"""FROM debian:12-slim
RUN apt-get update && apt-get install -y python3
COPY . /app
ENTRYPOINT ["/usr/bin/python3"]
"""
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000a49444154789c6300010000050001"
    "0d0a2db40000000049454e44ae426082"
)
SAMPLES = {
    "python": (0.999331, PYTHON),
    "json": (0.748074, b'{"name": "x", "items": [1, 2, 3], "nested": {"a": null, "b": true}}\n'),
    "png": (0.999707, PNG),
    "html": (0.736289, b"<!DOCTYPE html>\n<html><head><title>t</title></head></html>\n"),
    "dockerfile": (0.999975, DOCKERFILE),
}


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def check_version(magika: Magika) -> bool:
    """The package is the locked one, and so are the weights that it carries."""
    found, weights = metadata.version("magika"), magika.get_model_name()
    wanted = WHEELS.get("magika", found)
    ok = found == wanted and weights == MODEL
    return report("magika", ok=ok, value=[found, weights], expected=[wanted, MODEL])


def check_sample(magika: Magika, label: str) -> bool:
    """The content gets its label, with the score it had."""
    score, content = SAMPLES[label]
    result = magika.identify_bytes(content)
    found = str(result.output.label)
    ok = found == label and abs(result.score - score) <= TOLERANCE
    value, expected = [found, round(result.score, 6)], [label, score]
    facts = {"value": value, "expected": expected, "tolerance": TOLERANCE}
    return report(f"magika-{label}", ok=ok, **facts)


def main() -> int:
    """Run every check; 0 when all hold."""
    magika = Magika()
    held = [check_version(magika), *(check_sample(magika, label) for label in SAMPLES)]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
