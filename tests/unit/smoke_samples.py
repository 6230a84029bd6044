"""Recorded answers of engines and scripts, and small makers for the smoke tests."""

import json

from gpulayers.engine.docker import ContainerState, EngineInfo
from gpulayers.engine.process import Finished
from gpulayers.smoke.model import CallError, Check, Level, Line, ScriptResult

RUNNING = ContainerState(status="running", exit_code=0, oom_killed=False, error="")
INFO = EngineInfo(
    version="28.5.2", runtimes=frozenset({"runc"}), cdi_devices=(), cdi_spec_dirs=("/etc/cdi",)
)
# What layers/cuda/smoke/gpu_cuda.py printed with the stand-in driver.
STAND_IN = """\
{"check": "driver", "ok": true, "value": "12.8", "unit": "CUDA", "file": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "stand_in": true}
{"check": "init", "ok": true}
{"check": "devices", "ok": true, "value": [{"name": "NVIDIA L4", "cc": "8.9", "mib": 23034}]}
{"check": "memory", "ok": true, "value": 3.0, "expected": 3.0, "tolerance": 0.0}
{"check": "kernel", "ok": false, "error": {"call": "cuModuleLoadData", "code": 801, "name": "CUDA_ERROR_NOT_SUPPORTED"}}
"""  # noqa: E501 - recorded
REAL_GPU = STAND_IN.replace('"stand_in": true', '"stand_in": false').replace(
    STAND_IN.splitlines()[-1], '{"check": "kernel", "ok": true, "value": 23.0, "expected": 23.0}'
)
NO_LIBCUDA = json.dumps(
    {
        "check": "driver",
        "ok": False,
        "error": {"call": "dlopen", "code": 0, "name": "LIBCUDA_NOT_FOUND libcuda.so.1: cannot"},
    }
)


def finished(
    stdout: str = "", *, code: int = 0, stderr: str = "", timed_out: bool = False
) -> Finished:
    return Finished(
        argv=("docker",), code=code, stdout=stdout, stderr=stderr, seconds=0.5, timed_out=timed_out
    )


def check(level: Level = Level.CPU, *, name: str = "test", text: str = "") -> Check:
    return Check(layer="cuda", name=f"{level}_{name}.py", level=level, text=text)


def line(name: str = "os", *, ok: bool = True, error: CallError | None = None) -> Line:
    return Line(
        check=name,
        ok=ok,
        value="debian13",
        unit="",
        expected="debian12",
        skip="",
        stand_in=False,
        error=error,
    )


def result(
    *lines: Line, code: int = 0, timed_out: bool = False, said: tuple[str, ...] = ()
) -> ScriptResult:
    return ScriptResult(
        script="cuda/x.py", code=code, seconds=3.0, timed_out=timed_out, lines=lines, said=said
    )
