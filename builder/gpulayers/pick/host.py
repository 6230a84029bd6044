"""What this machine has, from NVML or from `nvidia-smi`."""

import importlib
import platform
from collections.abc import Callable, Iterator
from types import ModuleType

from gpulayers.engine import process
from gpulayers.errors import ToolError
from gpulayers.facts import find
from gpulayers.facts.model import Facts
from gpulayers.pick.choose import Host
from gpulayers.scan.trivy import Run

SMI = ("nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader")
SHORT_S = 30.0
Row = tuple[str, str, str]
COLUMNS = 3


def nvml() -> ModuleType | None:
    """The module of ``nvidia-ml-py``, or None where it is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def read_host(
    facts: Facts, *, module: Callable[[], ModuleType | None] = nvml, run: Run = process.run
) -> Host:
    """The driver and GPUs of this machine; a GPU that no fact knows by its compute capability.

    Raises: ToolError: neither NVML nor ``nvidia-smi`` answers; says what each said.
    """
    found, said = _by_nvml(module())
    if not found:
        found, words = _by_smi(run)
        said = f"{said}; {words}"
    if not found:
        msg = f"this machine shows no NVIDIA GPU: {said}"
        raise ToolError(msg, hint="say --driver and --gpu, or run it where the GPU is")
    return Host(
        driver=found[0][1],
        gpus=tuple(dict.fromkeys(_known(facts, name, cc) for name, _, cc in found)),
        machine=platform.machine(),
    )


def _known(facts: Facts, name: str, capability: str) -> str:
    try:
        find.gpu(facts, name)
    except find.FactError:
        return capability
    return name


def _by_nvml(module: ModuleType | None) -> tuple[list[Row], str]:
    if module is None:
        return [], "nvidia-ml-py is not installed"
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        return [], f"NVML: {error}"
    try:
        return list(_devices(module)), "NVML knows no GPU"
    except module.NVMLError as error:
        return [], f"NVML: {error}"
    finally:
        module.nvmlShutdown()


def _devices(module: ModuleType) -> Iterator[Row]:
    driver = _text(module.nvmlSystemGetDriverVersion())
    for index in range(module.nvmlDeviceGetCount()):
        handle = module.nvmlDeviceGetHandleByIndex(index)
        major, minor = module.nvmlDeviceGetCudaComputeCapability(handle)
        yield _text(module.nvmlDeviceGetName(handle)), driver, f"{major}.{minor}"


def _text(value: object) -> str:
    """Older releases of nvidia-ml-py answer with bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _by_smi(run: Run) -> tuple[list[Row], str]:
    try:
        done = run(SMI, timeout_s=SHORT_S)
    except ToolError as error:
        return [], f"nvidia-smi: {error}"
    rows = [tuple(part.strip() for part in line.split(",")) for line in done.stdout.splitlines()]
    found = [(row[0], row[1], row[2]) for row in rows if len(row) == COLUMNS]
    if not done.ok or not found:
        return [], f"nvidia-smi: {' '.join(done.tail(2)) or f'exit status {done.code}'}"
    return found, ""
