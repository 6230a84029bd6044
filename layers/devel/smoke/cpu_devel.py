"""Are CUDA's headers and compilers where a program that compiles as it runs looks for them?"""

import json
import os
import pathlib
import subprocess

home = pathlib.Path(os.environ["CUDA_HOME"])
FIRST_NVCC = 13
cuda = json.loads(os.environ["GPULAYERS_CELL"])["cuda"]


def report(check: str, *, ok: bool, value: object, expected: object) -> None:
    """One line for each thing looked at."""
    print(json.dumps({"check": check, "ok": ok, "value": value, "expected": expected}))


header = (home / "include" / "cuda.h").read_text(encoding="utf-8", errors="replace")
lines = [line.split() for line in header.splitlines() if line.startswith("#define CUDA_VERSION ")]
number = int(lines[0][2]) if lines else 0
found = f"{number // 1000}.{number % 1000 // 10}"
report("cuda.h", ok=found == cuda, value=found, expected=cuda)

for name in ("ptxas", "nvcc"):
    program = home / "bin" / name
    if name == "nvcc" and int(cuda.split(".")[0]) < FIRST_NVCC:
        skip = "the wheels have nvcc from CUDA 13 on"
        print(json.dumps({"check": name, "ok": True, "skip": skip}))
        continue
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    said = next((line for line in done.stdout.splitlines() if "release" in line), "nothing")
    report(name, ok=f"release {cuda}" in said, value=said, expected=f"release {cuda}")
