"""Why wheels do not fit together, in one line: from uv's own words, and from their names."""

import pytest
from lock_samples import wheel

from gpulayers.lock import conflict

# Recorded from uv 0.13.9.
TWO_PINS = """\
error: No solution found when resolving dependencies
  cause: Because cuda-toolkit[cudart]==12.6.1 depends on nvidia-cuda-runtime-cu12{sys_platform == 'linux' or sys_platform == 'win32'}==12.6.68.* and cuda-toolkit[cudart]==12.6.0 depends on nvidia-cuda-runtime-cu12{sys_platform == 'linux' or sys_platform == 'win32'}==12.6.37.*, we can conclude that cuda-toolkit[cudart]>=12.6.0,<=12.6.1 depends on nvidia-cuda-runtime-cu12>=12.6.37.dev0,<12.6.69.dev0.
         And because cuda-toolkit[cudart]==12.6.3 depends on nvidia-cuda-runtime-cu12{sys_platform == 'linux' or sys_platform == 'win32'}==12.6.77.* and torch==2.8.0 depends on nvidia-cuda-runtime-cu12{platform_machine == 'x86_64' and sys_platform == 'linux'}==12.8.90, we can conclude that torch==2.8.0 and cuda-toolkit[cudart]>=12.6.0,<=12.6.3 are incompatible.
         And because you require torch==2.8.0 and cuda-toolkit[cudart]==12.6.*, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
NO_WHEEL = """\
error: No solution found when resolving dependencies
  cause: Because torch==2.6.0 has no wheels with a matching Python ABI tag (e.g., `cp314`) and you require torch==2.6.0, we can conclude that your requirements are unsatisfiable.

hint: You require CPython 3.14 (`cp314`), but we only found wheels for `torch` (v2.6.0) with the following Python ABI tags: `cp39`
"""  # noqa: E501
PLATFORM = """\
  cause: Because onnxruntime-gpu==1.23.2 has no wheels with a matching platform tag (e.g., `manylinux_2_35_aarch64`) and you require onnxruntime-gpu==1.23.2, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
PYTHON = """\
  cause: Because the requested Python version (>=3.11) does not satisfy Python>=3.12 and you require jax[cuda12]==0.12.0.1, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501
NO_VERSION = """\
  cause: Because only the following versions of cuda-toolkit[cudart] are available:
             cuda-toolkit[cudart]<12.7.dev0
             cuda-toolkit[cudart]>12.8.dev0
         and you require cuda-toolkit[cudart]==12.7.*, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        pytest.param(
            TWO_PINS,
            "cuda-toolkit[cudart]==12.6.3 wants nvidia-cuda-runtime-cu12==12.6.77.*, "
            "torch==2.8.0 wants nvidia-cuda-runtime-cu12==12.8.90",
            id="two pins",
        ),
        pytest.param(NO_WHEEL, "torch==2.6.0 has no wheel for cp314", id="no wheel"),
        pytest.param(
            PLATFORM,
            "onnxruntime-gpu==1.23.2 has no wheel for manylinux_2_35_aarch64",
            id="no wheel for the platform",
        ),
        pytest.param(PYTHON, "jax[cuda12]==0.12.0.1 wants Python>=3.12", id="python"),
        pytest.param(
            NO_VERSION,
            "only the following versions of cuda-toolkit[cudart] are available: "
            "cuda-toolkit[cudart]<12.7.dev0 cuda-toolkit[cudart]>12.8.dev0, "
            "wanted is cuda-toolkit[cudart]==12.7.*",
            id="no such version",
        ),
    ],
)
def test_the_heart_of_what_uv_says_is_one_line(said: str, wanted: str) -> None:
    assert conflict.reason(said) == wanted


def test_words_that_nobody_knows_are_kept_but_not_without_end() -> None:
    assert conflict.reason("something\n  else") == "something else"
    assert len(conflict.reason("x" * 5000)) == conflict.MOST


@pytest.mark.parametrize(
    ("name", "version", "major"),
    [
        ("nvidia-cuda-runtime-cu12", "12.8.90", 12),
        ("nvidia-cudnn-cu13", "9.26.0.51", 13),
        ("nvidia-nccl-cu12", "2.27.3", 12),
        ("nvidia-cublas", "13.4.1.3", 13),
        ("nvidia-cuda-runtime", "13.2.86", 13),
    ],
)
def test_libraries_of_another_cuda_are_seen_by_name_or_version(
    name: str, version: str, major: int
) -> None:
    assert conflict.foreign([wheel(name, version)], major) == ""
    assert conflict.foreign([wheel(name, version)], 25 - major) == f"{name}=={version}"


def test_packages_that_carry_both_majors_are_no_conflict() -> None:
    fine = [
        wheel("nvidia-cutlass-dsl-libs-cu12", "4.8.0"),
        wheel("nvidia-cusolver", "12.2.0.11"),
        wheel("nvidia-nvjitlink", "13.5.37"),
        wheel("numpy", "2.4.0"),
    ]
    assert conflict.foreign(fine, 13) == ""
