"""Files that say what an app needs."""

from pathlib import Path

import pytest

from gpulayers.errors import ProjectError
from gpulayers.lock import demands

A, B = "a" * 64, "b" * 64


def texts(path: Path) -> list[str]:
    return [one.text for one in demands.read(path)]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_of_requirements_are_read_without_comments(tmp_path: Path) -> None:
    text = "# all\n\nhttpx>=0.27  # why\nUvicorn[standard]==0.30; python_version >= '3.9'\n"
    path = write(tmp_path, "requirements.txt", text)
    assert texts(path) == ["httpx>=0.27", "Uvicorn[standard]==0.30; python_version >= '3.9'"]
    assert [one.name for one in demands.read(path)] == ["httpx", "uvicorn"]


def test_hashes_are_kept_across_lines(tmp_path: Path) -> None:
    text = f"--require-hashes\na==1 \\\n    --hash=sha256:{B} \\\n    --hash=sha256:{A}\nb==2\n"
    first, second = demands.read(write(tmp_path, "requirements.txt", text))
    assert (first.text, first.sha256) == ("a==1", (A, B))
    assert (second.text, second.sha256) == ("b==2", ())


@pytest.mark.parametrize(
    ("line", "word"),
    [("-r other.txt", "'-r'"), ("--index-url=x", "'--index-url=x'"), ("-e .", "'-e'")],
)
def test_options_that_reach_elsewhere_are_refused_with_their_line(
    tmp_path: Path, line: str, word: str
) -> None:
    path = write(tmp_path, "requirements.txt", f"a==1 \\\n  --hash=sha256:{A}\n{line}\n")
    with pytest.raises(ProjectError, match=r"requirements\.txt:3: wanted a requirement") as caught:
        demands.read(path)
    assert word in str(caught.value)


def test_what_is_no_requirement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"wanted a requirement \(PEP 508\), found '\./a\.whl'"):
        demands.read(write(tmp_path, "requirements.txt", "./a.whl\n"))


LOCK = f"""\
lock-version = "1.0"
[[packages]]
name = "httpx"
version = "0.27.0"
marker = "sys_platform == 'linux'"
wheels = [{{ name = "httpx-0.27.0-py3-none-any.whl", hashes = {{ sha256 = "{A}" }} }}]
[[packages]]
name = "idna"
version = "3.7"
"""


def test_a_pylock_is_read_with_markers_and_hashes(tmp_path: Path) -> None:
    found = demands.read(write(tmp_path, "pylock.toml", LOCK))
    assert [(one.text, one.sha256) for one in found] == [
        ("httpx==0.27.0; sys_platform == 'linux'", (A,)),
        ("idna==3.7", ()),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = 1\n", "wanted a pylock.toml"),
        ("a = \n", "wanted TOML"),
        (
            'lock-version = "1.0"\n[[packages]]\nname = "me"\ndirectory = { path = "." }\n',
            "me: wanted a version, found a folder",
        ),
    ],
)
def test_another_lock_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        demands.read(write(tmp_path, "pylock.toml", text))


def test_a_project_says_what_it_is_built_with_and_runs_with(tmp_path: Path) -> None:
    assert demands.to_build(tmp_path) == demands.SETUPTOOLS
    assert demands.to_run(tmp_path) == ()
    text = '[build-system]\nrequires = ["flit_core>=3"]\n[project]\ndependencies = ["numpy>=2"]\n'
    write(tmp_path, "pyproject.toml", text)
    assert demands.to_build(tmp_path) == ("flit_core>=3",)
    assert demands.to_run(tmp_path) == ("numpy>=2",)
