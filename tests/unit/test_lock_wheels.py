"""Wheels: which of many fits best, and what uv's own words mean."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from lock_samples import AMD64, wheel
from packaging.tags import Tag

from gpulayers.errors import GpulayersError, ProjectError, RemoteError, ToolError
from gpulayers.lock import wheels
from gpulayers.lock.wheels import Question, read_answer, refusal, supported_tags
from gpulayers.refs import Platform

ARM64 = Platform("linux", "arm64")
SHA = "0" * 63
QUESTION = Question(
    python="3.11",
    platform=AMD64,
    requirements=("cupy-cuda12x==13.6.0", "numpy"),
    fixed=(wheel("cuda-toolkit", "12.8.1"),),
    stands_in_for=("onnxruntime",),
)


def answer(name: str, version: str, *files: str) -> str:
    """A pylock.toml as uv writes it."""
    entries = ", ".join(
        f'{{ url = "https://index.example/a/{file}#x", size = {number + 1}, '
        f'hashes = {{ sha256 = "{SHA}{number % 10}" }} }}'
        for number, file in enumerate(files)
    )
    return (
        'lock-version = "1.0"\ncreated-by = "uv"\n\n[[packages]]\n'
        f'name = "{name}"\nversion = "{version}"\nwheels = [{entries}]\n'
    )


def best(*files: str, python: str = "3.11", platform: Platform = AMD64) -> str:
    tags = supported_tags(python, platform)
    (found,) = read_answer(answer("x", "1.0", *files), tags)
    return found.file


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        ("x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", ["x-1.0-py3-none-any.whl"]),
        (
            "x-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            ["x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", "x-1.0-cp311-abi3-linux_x86_64.whl"],
        ),
        (
            "x-1.0-cp311-cp311-manylinux2014_x86_64.whl",
            ["x-1.0-cp311-cp311-manylinux2010_x86_64.whl"],
        ),
        ("x-1.0-cp310-abi3-manylinux2014_x86_64.whl", ["x-1.0-py3-none-manylinux2014_x86_64.whl"]),
        (
            "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
            [
                "x-1.0-cp311-cp311-manylinux_2_36_x86_64.whl",
                "x-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
                "x-1.0-cp311-cp311-manylinux_2_17_aarch64.whl",
                "x-1.0-cp311-cp311-musllinux_1_1_x86_64.whl",
                "x-1.0-cp311-cp311t-manylinux_2_17_x86_64.whl",
                "x-1.0-cp311-cp311-win_amd64.whl",
            ],
        ),
        ("x-1.0-2-py3-none-any.whl", ["x-1.0-py3-none-any.whl", "x-1.0-1-py3-none-any.whl"]),
        (
            "x-1.0-py2.py3-none-manylinux1_x86_64.whl",
            ["x-1.0-py2.py3-none-any.whl", "x-1.0-strange.whl"],
        ),
    ],
)
def test_of_several_wheels_the_best_is_taken_in_whatever_order(
    wanted: str, others: list[str]
) -> None:
    assert best(wanted, *others) == wanted
    assert best(*others, wanted) == wanted
    assert best(*others[::-1], wanted) == wanted


def test_another_platform_takes_other_wheels() -> None:
    files = (
        "x-1.0-py3-none-manylinux_2_28_x86_64.whl",
        "x-1.0-py3-none-manylinux_2_28_aarch64.whl",
    )
    assert best(*files) == files[0]
    assert best(*files, platform=ARM64) == files[1]


def test_tags_are_those_of_that_python_and_not_of_the_one_that_runs_us() -> None:
    tags = supported_tags("3.13", AMD64)
    assert Tag("cp313", "cp313", "manylinux_2_28_x86_64") in tags
    assert {tag.abi for tag in tags} == {"cp313", "abi3", "none"}
    assert not any("cp314" in tag.interpreter or "musl" in tag.platform for tag in tags)
    assert min(tags.values()) == 0


def test_no_wheel_needs_a_newer_glibc_than_the_oldest_base_has() -> None:
    platforms = {tag.platform for tag in supported_tags("3.11", AMD64)}
    newest = max(int(p.split("_")[2]) for p in platforms if p.startswith("manylinux_2_"))
    assert newest == wheels.GLIBC[1]


@pytest.mark.parametrize("files", [(), ("x-1.0-cp312-cp312-win_amd64.whl",), ("x-1.0.tar.gz",)])
def test_a_package_without_a_fitting_wheel_is_told(files: tuple[str, ...]) -> None:
    with pytest.raises(ProjectError, match=r"x 1\.0 has no wheel that fits") as caught:
        best(*files)
    assert "source distributions are not built" in caught.value.hint


def test_a_wheel_is_locked_by_name_hash_size_and_index_never_by_address() -> None:
    text = answer("Nvidia_Cublas.cu12", "12.8", "nvidia_cublas_cu12-12.8-py3-none-any.whl")
    (found,) = read_answer(text, supported_tags("3.11", AMD64))
    assert found.name == "nvidia-cublas-cu12"
    assert (found.sha256, found.size_bytes, found.index) == (f"{SHA}0", 1, "default")
    assert "example" not in repr(found)


def test_names_in_addresses_are_decoded() -> None:
    assert best("x-1.0%2Bcu128-py3-none-any.whl") == "x-1.0+cu128-py3-none-any.whl"


def test_an_index_without_hashes_is_refused() -> None:
    text = answer("x", "1.0", "x-1.0-py3-none-any.whl").replace("sha256", "md5")
    with pytest.raises(RemoteError, match=r"no file and sha256 for x 1\.0") as caught:
        read_answer(text, supported_tags("3.11", AMD64))
    assert caught.value.hint == "use an index that serves hashes"


def test_an_answer_without_packages_is_empty() -> None:
    assert read_answer('lock-version = "1.0"\n', {}) == ()
    assert read_answer("packages = [1]\n", {}) == ()


def test_a_package_that_is_no_wheel_at_all_is_told() -> None:
    text = '[[packages]]\nname = "x"\nversion = "1"\nvcs = { url = "https://git.example/x" }\n'
    with pytest.raises(ProjectError, match="x 1 has no wheel"):
        read_answer(text, supported_tags("3.11", AMD64))


# What uv 0.13.9 said, recorded against indexes that were made to answer so.
RECORDED: tuple[tuple[type[GpulayersError], int, str], ...] = (
    (
        ProjectError,
        1,
        (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because there is no version of click==99.0 and you require click==99.0, "
            "we can conclude that your requirements are unsatisfiable."
        ),
    ),
    (
        ProjectError,
        1,
        (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because x was not found in the package registry and you require x, we can "
            "conclude that your requirements are unsatisfiable."
        ),
    ),
    (
        RemoteError,
        2,
        (
            "error: Request failed after 3 retries in 6.0s\n"
            "  cause: Failed to fetch: http://127.0.0.1:9/simple/click/\n"
            "  cause: error sending request for url (http://127.0.0.1:9/simple/click/)\n"
            "  cause: client error (Connect)\n  cause: tcp connect error\n"
            "  cause: Connection refused (os error 111)"
        ),
    ),
    (
        RemoteError,
        2,
        (
            "error: Request failed after 3 retries in 8.8s\n"
            "  cause: Failed to fetch: http://index.example/simple/click/\n"
            "  cause: HTTP status server error (503 Service Unavailable) for url (http://x/)"
        ),
    ),
    (
        RemoteError,
        1,
        (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because click was not found in the package registry and you require click, "
            "we can conclude that your requirements are unsatisfiable.\n"
            "hint: An index URL (http://index.example/simple) could not be queried due to a "
            "lack of valid authentication credentials (401 Unauthorized)"
        ),
    ),
    (
        RemoteError,
        1,
        (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because click was not found in the package registry and you require click, "
            "we can conclude that your requirements are unsatisfiable.\n"
            "hint: An index (http://index.example/simple) returned a 403 Forbidden error. Check "
            "that the index URL is correct and the credentials are valid."
        ),
    ),
    (ToolError, 2, "error: Failed to parse: uv.toml\n  cause: TOML parse error at line 1"),
    (ToolError, 2, "error: invalid value 'pylock.toml' for '--format <FORMAT>'"),
    (ToolError, -9, ""),
)


@pytest.mark.parametrize(("kind", "code", "said"), RECORDED)
def test_a_refusal_of_uv_is_told_by_who_can_mend_it(
    kind: type[GpulayersError], code: int, said: str
) -> None:
    error = refusal(QUESTION, code, said.splitlines())
    assert type(error) is kind
    assert "cupy-cuda12x==13.6.0, numpy" in str(error)
    assert all(f"  {line}" in str(error) for line in said.splitlines())
    assert error.hint


def test_uv_is_asked_for_wheels_alone_of_that_python_and_platform(tmp_path: Path) -> None:
    argv = wheels._argv(QUESTION, tmp_path, Path("/in/uv.toml"), {})
    assert {
        "--config-file=/in/uv.toml",
        "--python-version=3.11",
        "--python-platform=x86_64-manylinux_2_35",
        "--only-binary=:all:",
        "--format=pylock.toml",
    } <= set(argv)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "requirements.in": "cupy-cuda12x==13.6.0\nnumpy\n",
        "constraints.txt": "cuda-toolkit==12.8.1\n",
        "overrides.txt": "onnxruntime; python_version < '0'\n",
    }


def test_a_package_with_an_index_of_its_own_is_asked_there_alone(tmp_path: Path) -> None:
    question = replace(
        QUESTION,
        requirements=("torch==2.8.0", "numpy"),
        sources=(("torch", "pytorch/cu126"), ("torchvision", "pytorch/cu126")),
    )
    argv = wheels._argv(question, tmp_path, Path("/in/uv.toml"), {"pytorch/cu126": "https://a.b/c"})
    assert argv[-1] == "pyproject.toml"
    asked = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert asked["project"]["dependencies"] == ["torch==2.8.0", "numpy"]
    assert asked["tool"]["uv"] == {
        "sources": {"torch": {"index": "pytorch-cu126"}},
        "index": [{"name": "pytorch-cu126", "url": "https://a.b/c", "explicit": True}],
    }


def test_a_wheel_is_locked_with_the_name_of_its_index() -> None:
    text = answer("torch", "2.8.0+cu126", "torch-2.8.0%2Bcu126-py3-none-any.whl")
    tags = supported_tags("3.11", AMD64)
    (found,) = read_answer(text, tags, [("torch", "pytorch/cu126")])
    assert (found.index, found.version) == ("pytorch/cu126", "2.8.0+cu126")
    assert found.file == "torch-2.8.0+cu126-py3-none-any.whl"
    assert read_answer(text, tags)[0].index == "default"
