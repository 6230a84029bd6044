"""Make the demo's model digits again: train, write ONNX and manifest, print reference values.

    python tools/make_digits.py [FOLDER]

Needs numpy and scikit-learn (for its data set), in an environment of its own. The ONNX file is
written by hand, so no ONNX package is needed. Weights are rounded to 1/1024, which makes the file
the same on machines whose linear algebra differs in the last bits of a sum.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

SEED = 20
HIDDEN = 32
EPOCHS = 1500
RATE = 0.5
TRAINING = 1500
ROUNDING = 1024
IR_VERSION, OPSET = 8, 13
FLOAT = 1
SAMPLES = (1500, 1513, 1522, 1560, 1701)

Matrix = NDArray[np.float64]
Weights = tuple[Matrix, Matrix, Matrix, Matrix]


def probabilities(pixels: Matrix, weights: Weights) -> tuple[Matrix, Matrix]:
    """The hidden layer's values and the ten probabilities of each picture."""
    w1, b1, w2, b2 = weights
    hidden = np.maximum(pixels @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def train(pixels: Matrix, labels: NDArray[np.int64]) -> Weights:
    """Weights after plain gradient descent over the whole training set."""
    random = np.random.default_rng(SEED)
    w1 = random.normal(0, 0.15, (pixels.shape[1], HIDDEN))
    w2 = random.normal(0, 0.15, (HIDDEN, 10))
    b1, b2 = np.zeros(HIDDEN), np.zeros(10)
    wanted = np.eye(10)[labels]
    for _ in range(EPOCHS):
        hidden, found = probabilities(pixels, (w1, b1, w2, b2))
        error = (found - wanted) / len(pixels)
        back = (error @ w2.T) * (hidden > 0)
        w2, b2 = w2 - RATE * hidden.T @ error, b2 - RATE * error.sum(axis=0)
        w1, b1 = w1 - RATE * pixels.T @ back, b1 - RATE * back.sum(axis=0)
    return rounded(w1), rounded(b1), rounded(w2), rounded(b2)


def rounded(values: Matrix) -> Matrix:
    """The nearest multiples of 1 / ROUNDING."""
    return np.round(values * ROUNDING) / ROUNDING


def varint(value: int) -> bytes:
    """A number in protobuf's encoding: seven bits a byte, lowest first."""
    parts = []
    while value >> 7:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, values: Matrix) -> bytes:
    """An ONNX TensorProto of float32, little-endian."""
    dims = b"".join(field(1, size) for size in values.shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, values.astype("<f4").tobytes())


def node(kind: str, inputs: tuple[str, ...], output: str) -> bytes:
    """An ONNX NodeProto without attributes: the defaults of opset 13 are what is wanted."""
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def value_info(name: str, width: int) -> bytes:
    """An ONNX ValueInfoProto: float32, any number of rows."""
    shape = field(1, field(2, "batch")) + field(1, field(1, width))
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape)))


def onnx(weights: Weights) -> bytes:
    """The whole model: pixels / 16 -> 32 rectified -> 10 probabilities."""
    nodes = (
        node("Gemm", ("pixels", "w1", "b1"), "h"),
        node("Relu", ("h",), "r"),
        node("Gemm", ("r", "w2", "b2"), "s"),
        node("Softmax", ("s",), "probabilities"),
    )
    tensors = (tensor(n, w) for n, w in zip(("w1", "b1", "w2", "b2"), weights, strict=True))
    graph = (
        b"".join(field(1, part) for part in nodes)
        + field(2, "digits")
        + b"".join(field(5, part) for part in tensors)
        + field(11, value_info("pixels", 64))
        + field(12, value_info("probabilities", 10))
    )
    return (
        field(1, IR_VERSION) + field(2, "gpulayers") + field(7, graph) + field(8, field(2, OPSET))
    )


def manifest(model: bytes) -> str:
    """The text of manifest.json."""
    entry = {"bytes": len(model), "sha256": hashlib.sha256(model).hexdigest()}
    return json.dumps({"made-by": "tools/make_digits.py", "files": {"model.onnx": entry}}, indent=2)


def main(arguments: list[str]) -> None:
    """Write the folder; print accuracy and the table for the smoke checks."""
    folder = Path(arguments[0] if arguments else "examples/demo/models/digits")
    raw, labels = load_digits(return_X_y=True)
    pixels = raw / 16.0
    weights = train(pixels[:TRAINING], labels[:TRAINING])
    _, found = probabilities(pixels, weights)
    right = found[TRAINING:].argmax(axis=1) == labels[TRAINING:]
    model = onnx(weights)
    (folder / "model.onnx").write_bytes(model)
    (folder / "manifest.json").write_text(f"{manifest(model)}\n", encoding="utf-8")
    print(f"{len(model)} bytes; right on {right.mean():.3f} of {len(right)} unseen pictures")
    for index in SAMPLES:
        # One letter a pixel, a = 0 to q = 16.
        picture = "".join(chr(ord("a") + int(value)) for value in raw[index])
        print(f'    ("{picture}", {labels[index]}, {found[index][labels[index]]:.6f}),')


if __name__ == "__main__":
    main(sys.argv[1:])
