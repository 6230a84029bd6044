"""A whole torch image for real: about 4 GB of wheels, so it runs only when it is asked for.

``GPULAYERS_SLOW=1 python3 tools/devenv run -- python -m pytest tests/engine/test_torch.py``; it
takes 25 GB of disk.
"""

import os
import secrets
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

import fleet
import pytest
from fleet import Built, Project
from standin_driver import StandIn

from gpulayers import diagnose
from gpulayers.engine import process

BUILD_S = 5400.0
MATRIX = """\
schema = 1

[images]
name = "gpu"
registry = "{root}"

[axes]
os = ["debian12"]
python = ["3.11"]
cuda = ["12.8"]
framework = ["torch==2.8.0"]

{bases}
[python."3.11"]
sources = ["debian:bookworm"]
"""
SAID = tomllib.loads((fleet.ROOT / "tests/unit/torch.toml").read_text("utf-8"))["said"]
START = "import torch; print(torch.cuda.is_available()); torch.zeros(3).cuda()"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_S + 600),
    pytest.mark.skipif(not os.environ.get("GPULAYERS_SLOW"), reason="GPULAYERS_SLOW is not set"),
]


@pytest.fixture(scope="module")
def built(
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Built:
    fresh_root = f"{registry}/t-{secrets.token_hex(4)}"
    folder = tmp_path_factory.mktemp("torch") / "project"
    project = Project(folder=folder, root=fresh_root, env=engine_env)
    tables = [table for table in base_tables.split("[base.") if not table.startswith("debian13")]
    project.write("matrix.toml", MATRIX.format(root=fresh_root, bases="[base.".join(tables)))
    argv = [sys.executable, "-m", "gpulayers", "build", "--registry", fresh_root]
    finished = process.run(argv, cwd=folder, env=engine_env, timeout_s=BUILD_S)
    return fleet.built(finished, folder / fleet.REPORT)


def test_the_image_is_what_its_name_says_and_computes(built: Built) -> None:
    assert built.exit_codes == {0}, built.said
    (image,) = built.images.values()
    assert image.gates["identity"]["status"] == "passed"
    # Without a GPU the gate as a whole is not run; the scripts for the CPU are.
    assert (
        "cpu passed" in image.gates["smoke"]["text"] or image.gates["smoke"]["status"] == "passed"
    )


def test_torch_and_each_big_library_are_layers_of_their_own(built: Built) -> None:
    (image,) = built.images.values()
    steps = [step for step, _ in image.digests()]
    assert "torch-2.8.0" in steps
    assert "nvidia-cudnn-cu12-9.10.2.21" in steps
    assert len(steps) <= 40


def test_the_parts_of_cuda_are_those_that_torch_asks_for(built: Built) -> None:
    (image,) = built.images.values()
    assert "nvidia-cublas-cu12-12.8.4.1" in [step for step, _ in image.digests()]


@pytest.mark.parametrize("said", SAID, ids=lambda said: said["name"])
def test_what_torch_says_of_a_driver_is_known(
    said: Mapping[str, Any], built: Built, standin: StandIn
) -> None:
    (image,) = built.images.values()
    argv = ["docker", "run", "--rm", "--network=none"]
    if said["driver"]:
        standin.install(*said["standin"])
        argv.append(f"--device={standin.kind}=all")
    done = process.run([*argv, str(image.ref), "python", "-c", START], timeout_s=300)
    text = f"{done.stdout}\n{done.stderr}"
    assert [each.error.name for each in diagnose.find(text.splitlines())] == said["errors"], text
    assert said["text"].splitlines()[-1] in text
