"""How long looking takes: `why` and `list` against a program that does nothing but start.

``python bench/looking.py`` runs each command in turn, several rounds, and writes medians, ratios
and the most memory to ``bench/results/looking.json``. Exit status 1 when a limit is passed.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROUNDS = 7
HERE = Path(__file__).parent
RESULT = HERE / "results" / "looking.json"
US = (sys.executable, "-m", "gpulayers")
WHY = (*US, "why", "--framework", "torch==2.8.0", "--gpu", "L4", "--driver", "535.183.01")
START = (sys.executable, "-c", "import click")
# Of `why` to START; seconds and MB of `list --json`, all from the project's own aims.
MOST_RATIO, MOST_S, MOST_MB = 4.0, 3.0, 300.0
FRAMEWORKS = (
    *("torch==2.6.0", "torch==2.7.1", "torch==2.8.0", "torch==2.10.0", "torch==2.14.1"),
    *("jax==0.10.2", "tensorflow==2.21.0", "vllm==0.33.0", "cupy==14.2.0"),
    "onnxruntime-gpu==1.31.1",
)
CUDAS = ("11.8", "12.1", "12.4", "12.6", "12.8", "12.9", "13.0", "13.1", "13.2", "13.3")


def ten_thousand() -> str:
    """A matrix of 10 systems, Pythons, CUDA releases and frameworks each."""
    systems = [f"debian{number}" for number in range(10, 20)]
    pythons = [f"3.{minor}" for minor in range(5, 15)]
    axes = {"os": systems, "python": pythons, "cuda": CUDAS, "framework": FRAMEWORKS}
    lines = ["schema = 1", "[images]", 'name = "gpu"', 'registry = "localhost:5000"', "[axes]"]
    lines += [f"{name} = {json.dumps(list(values))}" for name, values in axes.items()]
    lines += [f'[base.{name}]\nsources = ["debian:12"]' for name in systems]
    lines += [f'[python."{name}"]\nsources = ["standalone"]' for name in pythons]
    return "\n".join(lines) + "\n"


def with_byte_code(folder: Path) -> dict[str, str]:
    """The environment, with byte code kept as on a user's machine, whatever is said here."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return env | {"PYTHONPYCACHEPREFIX": str(folder / "byte-code")}


def run(argv: tuple[str, ...], env: Mapping[str, str]) -> float:
    """Seconds that a command took; it must end well."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - start


def peak_mb(argv: tuple[str, ...], env: Mapping[str, str]) -> float:
    """The most memory of a command: asked in a process that has no other child."""
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code, *argv), check=True, capture_output=True, text=True, env=env
    )
    return int(done.stdout) * 1024 / 1e6


def main() -> int:
    """Measure, write, and say what was found."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "matrix.toml").write_text(ten_thousand(), encoding="utf-8")
        listing = (*US, "list", "--json", "--project", folder)
        commands = {"import click": START, "why": WHY, "list --json, 10,000 cells": listing}
        env = with_byte_code(Path(folder))
        for argv in commands.values():
            run(argv, env)  # byte code and files are there from now on
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, argv in commands.items():
                seconds[name].append(run(argv, env))
        memory = peak_mb(listing, env)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    ratio = medians["why"] / medians["import click"]
    slowest = medians["list --json, 10,000 cells"]
    found = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "rounds": ROUNDS,
        "median_seconds": {name: round(value, 3) for name, value in medians.items()},
        "why_to_import_click": round(ratio, 2),
        "list_peak_mb": round(memory, 1),
        "limits": {"why_to_import_click": MOST_RATIO, "list_s": MOST_S, "list_mb": MOST_MB},
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))
    return int(ratio > MOST_RATIO or slowest > MOST_S or memory > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
