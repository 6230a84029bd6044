"""What an image is for a verdict: from labels, packages and environment."""

import pytest

from gpulayers.inspection import Inspected
from gpulayers.inspection.contents import contents
from gpulayers.inspection.model import Library, Wheel


def image(
    *wheels: str, labels: dict[str, str] | None = None, env: dict[str, str] | None = None
) -> Inspected:
    return Inspected(
        name="x",
        digest="",
        platform="linux/amd64",
        created="",
        key="",
        user="",
        working_dir="",
        entrypoint=(),
        command=(),
        env=env or {},
        labels=labels or {},
        layers=(),
        wheels=tuple(
            Wheel(name=name, version=version, owner="", source="files")
            for name, version in (text.split("==") for text in wheels)
        ),
        libraries=(
            Library(
                path="usr/local/cuda/compat/libcuda.so.1", size_bytes=1, owner="", is_driver=True
            ),
        ),
        pythons={"opt/python/lib/python3.11": "3.11.9"},
        glibc="2.36",
        system="debian12",
        code={},
    )


@pytest.mark.parametrize(
    ("wheels", "framework", "variant", "cuda"),
    [
        (("torch==2.8.0+cu126",), "torch==2.8.0", "cu126", ""),
        (("torch==2.8.0+cpu",), "torch==2.8.0", "cpu", ""),
        (("torch==2.8.0", "nvidia-cuda-runtime-cu12==12.8.90"), "torch==2.8.0", "", ""),
        (("torch==2.14.0", "vllm==0.33.0"), "vllm==0.33.0", "", ""),
        (("jax==0.10.2", "nvidia-cuda-runtime-cu12==12.9.79"), "jax==0.10.2", "", "12.9"),
        (("jax==0.10.2", "nvidia-cuda-runtime==13.0.96"), "jax==0.10.2", "", "13.0"),
        (("cupy-cuda12x==13.6.0",), "cupy==13.6.0", "cu12", ""),
        (("cupy-cuda12x==13.6.0", "nvidia-cuda-runtime-cu12==12.6.77"), "cupy==13.6.0", "", "12.6"),
    ],
)
def test_packages_say_framework_and_build(
    wheels: tuple[str, ...], framework: str, variant: str, cuda: str
) -> None:
    found = contents(image(*wheels))
    assert found.framework is not None
    assert (found.framework.format(), found.variant, found.cuda) == (framework, variant, cuda)
    assert found.python == "3.11"
    assert found.compat == ("usr/local/cuda/compat",)


def test_labels_of_ours_come_first() -> None:
    labels = {"io.gpulayers.framework.name": "torch", "io.gpulayers.framework.version": "2.8.0"}
    labels |= {"io.gpulayers.cuda": "12.8", "io.gpulayers.os": "debian12"}
    found = contents(image("torch==2.7.1", labels={**labels, "io.gpulayers.python": "3.12"}))
    assert found.framework is not None
    assert found.framework.format() == "torch==2.8.0"
    assert (found.cuda, found.os, found.python) == ("12.8", "debian12", "3.12")


def test_without_packages_the_environment_names_cuda() -> None:
    env = {"CUDA_VERSION": "12.8.1", "NV_CUDNN_VERSION": "9.8.0.87-1"}
    env |= {"NVIDIA_REQUIRE_CUDA": "cuda>=12.8", "NVIDIA_REQUIRE_JETPACK_X": "a", "PATH": "/bin"}
    found = contents(image(env=env))
    assert found.framework is not None
    assert found.framework.format() == "cuda==12.8.1"
    assert found.cudnn == "9.8.0.87"
    assert found.requirements == {"NVIDIA_REQUIRE_CUDA": "cuda>=12.8"}


def test_what_is_none_of_these_has_no_framework() -> None:
    assert contents(image("numpy==2.0")).framework is None
