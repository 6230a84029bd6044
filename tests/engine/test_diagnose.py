"""`diagnose` on what the genuine CUDA runtime and CuPy say, beside a driver that only answers."""

from collections.abc import Mapping

import pytest
from fleet import Built, Project
from standin_driver import StandIn

from gpulayers import diagnose
from gpulayers.engine import process

pytestmark = pytest.mark.timeout(1500)
# What each number is called by the runtime itself: name and sentence.
STRINGS = """
import ctypes, glob
runtime = ctypes.CDLL(sorted(glob.glob("/usr/lib/*/libcudart.so.*"))[0])
for name in ("cudaGetErrorName", "cudaGetErrorString"):
    getattr(runtime, name).restype = ctypes.c_char_p
for code in {codes}:
    print(code, runtime.cudaGetErrorName(code).decode())
    print(code, "CUDA error:", runtime.cudaGetErrorString(code).decode())
"""
NAMES: Mapping[int, str] = {
    2: "oom",
    34: "stub",
    35: "driver-too-old",
    36: "newer-driver-call",
    46: "busy",
    100: "no-device",
    200: "invalid-device-kernel",
    209: "no-kernel-image",
    214: "ecc",
    221: "ptx-jit-missing",
    222: "ptx-too-new",
    223: "ptx-jit-off",
    303: "shared-object-init",
    500: "symbol-not-found",
    700: "illegal-access",
    802: "fabric",
    803: "fwd-compat-mismatch",
    804: "fwd-compat-hw",
}
CUPY = "import cupy; print(cupy.cuda.runtime.getDeviceCount())"


@pytest.fixture
def ref(mini: tuple[Project, Built]) -> str:
    """An image with CuPy and CUDA's runtime."""
    build = mini[1]
    assert build.exit_codes == {0}, build.said
    return str(next(iter(build.images.values())).ref)


def said(ref: str, code: str, *options: str) -> str:
    argv = ["docker", "run", "--rm", "--network=none", *options, ref, "python", "-c", code]
    done = process.run(argv, timeout_s=300)
    return f"{done.stdout}\n{done.stderr}"


def names_in(text: str) -> list[str]:
    return [finding.error.name for finding in diagnose.find(text.splitlines())]


def test_every_sentence_of_the_genuine_runtime_is_known_by_its_number(ref: str) -> None:
    text = said(ref, STRINGS.format(codes=list(NAMES)))
    for code, name in NAMES.items():
        lines = [line for line in text.splitlines() if line.startswith(f"{code} ")]
        assert len(lines) == 2, text
        assert names_in(lines[1]) == [name], lines
        found = diagnose.find([lines[1]])[0]
        assert found.error.code == code, lines


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("fail = cuInit:100", "no-device"),
        ("fail = cuInit:802", "fabric"),
        ("fail = cuInit:803", "fwd-compat-mismatch"),
        ("fail = cuInit:804", "fwd-compat-hw"),
    ],
)
def test_what_cupy_says_beside_a_driver_that_fails(
    ref: str, standin: StandIn, line: str, name: str
) -> None:
    standin.install(line)
    text = said(ref, CUPY, f"--device={standin.kind}=all")
    assert "Traceback" in text
    assert names_in(text) == [name], text


def test_what_cupy_says_without_any_driver(ref: str) -> None:
    text = said(ref, CUPY)
    assert names_in(text) == ["driver-too-old"], text


def test_the_runtime_itself_calls_a_driver_without_its_tables_a_stub(
    ref: str, standin: StandIn
) -> None:
    standin.install()
    text = said(ref, CUPY, f"--device={standin.kind}=all")
    assert names_in(text) == ["stub"], text
