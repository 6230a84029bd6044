"""The scripts that run inside images: each stands alone; the model's check works."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "examples" / "demo" / "models"
SCRIPTS = sorted([*ROOT.glob("layers/*/smoke/*.py"), *MODELS.glob("*/smoke/*.py")])
FRAMEWORKS = {"torch", "torchvision", "torchaudio", "jax", "tensorflow", "vllm"}
OTHERS = {"numpy", "cupy", "onnxruntime", "magika", *FRAMEWORKS}
DIGITS = MODELS / "digits"


def roots(path: Path) -> set[str]:
    """The top-level modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_needs_nothing_but_python_and_its_layer(path: Path) -> None:
    assert roots(path) <= sys.stdlib_module_names | OTHERS
    assert path.name.startswith(("cpu_", "gpu_"))


@pytest.mark.parametrize("layer", ["base", "python", "cuda", "model"])
def test_the_scripts_of_the_lower_layers_need_python_alone(layer: str) -> None:
    scripts = list((ROOT / "layers" / layer / "smoke").glob("*.py"))
    assert scripts
    assert all(roots(path) <= sys.stdlib_module_names for path in scripts)


def checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    main = runpy.run_path(str(DIGITS / "check.py"))["main"]
    code = main([str(folder)])
    return code, capsys.readouterr().err


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("model.onnx", "manifest.json"):
        (tmp_path / name).write_bytes((DIGITS / name).read_bytes())
    return tmp_path


def test_the_model_is_what_its_manifest_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(DIGITS, capsys) == (0, "")


def test_a_whole_copy_passes(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(copy, capsys) == (0, "")


def test_a_changed_file_is_named(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "model.onnx").write_bytes(b"other")
    code, text = checked(copy, capsys)
    assert code == 1
    assert "model.onnx: wanted sha256 " in text


def test_missing_and_foreign_files_are_named(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "model.onnx").unlink()
    (copy / "extra.bin").write_bytes(b"x")
    code, text = checked(copy, capsys)
    assert code == 1
    assert "model.onnx: wanted a file of 9887 bytes, found none" in text
    assert "extra.bin: found a file that manifest.json does not name" in text


def test_an_unreadable_manifest_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "manifest.json").write_text(json.dumps([]))
    code, text = checked(copy, capsys)
    assert code == 1
    assert "manifest.json: cannot be read (TypeError" in text
