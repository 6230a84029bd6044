"""The digits classifier reads five pictures on the CPU as it did when it was made."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnxruntime

MODEL = Path(os.environ.get("DIGITS_MODEL", "/opt/models/digits/model.onnx"))
PROVIDER = "CPUExecutionProvider"
# The reference is binary64 by NumPy, the model computes in binary32.
TOLERANCE = 1e-4
# Pictures of 8 x 8, one letter a pixel (a = 0 to q = 16); the digit; its probability. Printed by
# tools/make_digits.py.
SAMPLES = (
    ("aaadmmcaaahpqqaaaepjoqdaacaaoqaaaaaaoqaaaaaapnaaaaaaqobaaaadqnca", 1, 0.750429),
    ("aafmndaaaeqjimaaacdaflaaaaadlkaaaaagopdaaaaaahlaaakgejlaaagqqoca", 3, 0.999892),
    ("aaabkqiaabipqqjaakqnlqiaabeakqeaaaaamqaaaaaamqaaaaaamqdaaaaakqha", 1, 0.825637),
    ("aaenqoaaacoqmeaaanqfaaaaalqkbaaaafpqfaaaaacpjaaaaafpjaaaaaeqfaaa", 5, 0.999146),
    ("aaeofaaaaanoaaaaacqkaaaaaeqhaaaaagqqpeaaaeqjeqcaabpngqlaaaenqpfa", 6, 0.999820),
)


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


def main() -> int:
    """Classify every picture; 0 when digits and probabilities are the known ones."""
    session = onnxruntime.InferenceSession(str(MODEL), providers=[PROVIDER])
    pixels = np.array([[ord(letter) - ord("a") for letter in s[0]] for s in SAMPLES], np.float32)
    output = session.run(["probabilities"], {"pixels": pixels / 16})[0]
    found, wanted = output.argmax(axis=1).tolist(), [digit for _, digit, _ in SAMPLES]
    known = np.array([probability for _, _, probability in SAMPLES])
    difference = float(np.abs(output[range(len(SAMPLES)), wanted] - known).max())
    held = [
        report("digits-labels", ok=found == wanted, value=found, expected=wanted),
        report("digits-values", ok=difference <= TOLERANCE, value=difference, expected=TOLERANCE),
    ]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
