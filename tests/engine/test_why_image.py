"""`why --image` on images of several makes: what is in them, and what is judged of that."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from elf_samples import entry, shared_object
from fleet import Built, Project

from gpulayers.engine import process
from gpulayers.fatbin import EXACT

pytestmark = pytest.mark.timeout(1500)
Push = Callable[..., str]
SITE = "root/usr/lib/python3.12/site-packages"


def metadata(name: str, version: str) -> str:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def python(folder: str) -> dict[str, str]:
    return {f"{folder}/os.py": "x = 1\n", f"{folder}/site-packages/x.py": "\n"}


def why(image: str, *words: str, env: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "gpulayers", "why", "--image", image, "--json", *words]
    done = process.run(argv, env=env, timeout_s=120)
    return done.code, json.loads(done.stdout) if done.stdout else {"said": done.stderr}


def test_an_image_of_nvidias_make_asks_what_its_environment_says(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    required = "cuda>=12.8 brand=tesla,driver>=535,driver<536"
    dockerfile = (
        "FROM scratch\nCOPY root/ /\nENV CUDA_VERSION=12.8.1\n"
        f'ENV NVIDIA_REQUIRE_CUDA="{required}"\n'
    )
    library = "root/usr/local/cuda-12.8/compat/libcuda.so.570.124.06"
    push("why/cuda", dockerfile, files={library: "elf"})
    image = f"{registry}/why/cuda:latest"
    on = ("--toolkit-mode", "legacy", "--driver", "535.183.01")
    code, found = why(image, "--gpu", "RTX 4090", *on, env=engine_env)
    held = found["image"]
    assert held["framework"] == "cuda==12.8.1"
    assert held["requirements"] == {"NVIDIA_REQUIRE_CUDA": required}
    assert held["compat"] == ["usr/local/cuda-12.8/compat"]
    assert (code, found["verdict"]) == (11, "broken"), found
    rules = {reason["rule"]: reason["outcome"] for reason in found["reasons"]}
    assert rules["container-requirement"] == "fail"
    assert rules["compat-libraries"] == "warn"
    code, found = why(image, "--gpu", "V100", *on, env=engine_env)
    assert (code, found["verdict"]) == (0, "ok-minor-compat"), found


def test_an_image_with_packages_of_pip_is_what_they_say(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    files = {
        f"{SITE}/torch-2.8.0+cu126.dist-info/METADATA": metadata("torch", "2.8.0+cu126"),
        f"{SITE}/torchvision-0.23.0.dist-info/METADATA": metadata("torchvision", "0.23.0"),
        "root/usr/bin/python3.12": "elf",
    }
    push("why/pip", "FROM scratch\nCOPY root/ /\n", files=files)
    words = ("--gpu", "RTX 5090", "--driver", "580.95.05")
    code, found = why(f"{registry}/why/pip:latest", *words, env=engine_env)
    held = found["image"]
    assert (held["framework"], held["variant"]) == ("torch==2.8.0", "cu126")
    assert (code, found["verdict"]) == (11, "broken"), found
    assert any("cu126" in reason["text"] for reason in found["reasons"])


def test_an_image_of_conda_is_read_by_the_same_files(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    folder = "root/opt/conda/lib/python3.11/site-packages"
    files = {
        f"{folder}/torch-2.6.0.dist-info/METADATA": metadata("torch", "2.6.0"),
        "root/opt/conda/conda-meta/pytorch-2.6.0-cuda124.json": '{"name": "pytorch"}',
    }
    push("why/conda", "FROM scratch\nCOPY root/ /\n", files=files)
    words = ("--gpu", "A100", "--driver", "580.95.05")
    code, found = why(f"{registry}/why/conda:latest", *words, env=engine_env)
    assert (found["image"]["framework"], code) == ("torch==2.6.0", 0), found


def test_an_image_without_python_and_cuda_is_told(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    push("why/none", "FROM scratch\nCOPY root/ /\n", files={"root/etc/motd": "hello"})
    words = ("--gpu", "A100", "--driver", "580.95.05")
    code, found = why(f"{registry}/why/none:latest", *words, env=engine_env)
    assert code == 4
    assert "wanted a framework or CUDA that is known, found none" in found["said"]


OS_RELEASE = 'ID=ubuntu\nVERSION_ID="20.04"\n'
LIBC = b"\x7fELF\0GNU C Library (Ubuntu GLIBC 2.31-0ubuntu9) stable release version 2.31.\n"


def test_code_and_glibc_are_read_out_of_layers_and_go_before_the_facts(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    code = shared_object([entry(2, 90), entry(2, 100, EXACT)], [entry(1, 120)]).ljust(9000, b"\0")
    files = {
        f"{SITE}/torch-2.8.0+cu126.dist-info/METADATA": metadata("torch", "2.8.0+cu126"),
        f"{SITE}/torch/lib/libtorch_cuda.so": code,
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12": shared_object([entry(2, 80)]),
        "root/usr/lib/os-release": OS_RELEASE,
        "root/usr/lib/x86_64-linux-gnu/libc.so.6": LIBC,
    }
    push("why/own-torch", "FROM scratch\nCOPY root/ /\n", files=files)
    image = f"{registry}/why/own-torch:latest"
    code_, found = why(image, "--gpu", "A100", "--driver", "580.95.05", env=engine_env)
    held = found["image"]
    assert (held["os"], held["glibc"]) == ("ubuntu20.04", "2.31")
    assert (held["sms"], held["exact_sms"], held["ptx"]) == (["9.0"], ["10.0"], ["12.0"])
    # The facts know a build for A100: this is another.
    assert (code_, found["verdict"]) == (11, "broken"), found
    (reason,) = (r for r in found["reasons"] if r["rule"] == "sass-coverage" and "9.0" in r["text"])
    assert reason["facts"][0]["id"] == "image/code"
    code_, found = why(image, "--gpu", "H100", "--driver", "580.95.05", env=engine_env)
    assert code_ == 0, found


def test_a_program_of_ones_own_is_judged_by_the_code_that_it_has(
    push: Push, registry: str, engine_env: dict[str, str]
) -> None:
    files = {
        "root/opt/app/solver": shared_object([entry(2, 80)]).ljust(5000, b"\0"),
        "root/usr/local/cuda-12.8/lib64/libx.so": shared_object([entry(2, 120)]).ljust(5000, b"\0"),
    }
    push("why/own", "FROM scratch\nCOPY root/ /\nENV CUDA_VERSION=12.8.1\n", files=files)
    image = f"{registry}/why/own:latest"
    for gpu, wanted in (("L4", 0), ("RTX 5090", 11)):
        code, found = why(image, "--gpu", gpu, "--driver", "580.95.05", env=engine_env)
        assert (found["image"]["sms"], code) == (["8.0"], wanted), found


def test_of_our_own_images_labels_are_enough(
    mini: tuple[Project, Built], engine_env: dict[str, str]
) -> None:
    build = mini[1]
    assert build.exit_codes == {0}, build.said
    for image in build.images.values():
        words = ("--gpu", "T4", "--driver", "535.183.01")
        code, found = why(str(image.ref), *words, env=engine_env)
        held = found["image"]
        assert (held["framework"], held["cuda"]) == ("cupy==13.6.0", "12.6")
        assert (held["os"], held["python"]) == (image.cell["os"], "3.11")
        assert held["requirements"]["NVIDIA_REQUIRE_CUDA"].startswith("driver>=525.60.13")
        assert held["read_bytes"] < held["bytes"] * 0.05
        assert held["glibc"] == ""
        _, deep = why(str(image.ref), "--deep", *words, env=engine_env)
        assert deep["image"]["read_bytes"] == deep["image"]["bytes"]
        assert deep["image"]["glibc"] == {"debian12": "2.36", "debian13": "2.41"}[held["os"]]
        assert (code, found["verdict"]) == (0, "ok-minor-compat"), found
