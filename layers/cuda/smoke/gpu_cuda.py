"""The driver, asked step by step, runs a kernel whose result is compared with the right one.

It talks to ``libcuda.so.1`` alone (the driver API), so it needs no CUDA library in the image. The
steps stop at the first that does not hold. A driver that names itself a stand-in is reported as
such: it can answer questions, and never runs a kernel.
"""

import ctypes
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path

# One text for every GPU since Maxwell: the driver compiles it for the one it finds.
PTX = b"""
.version 6.3
.target sm_50
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred p; .reg .f32 f<4>; .reg .b32 r<6>; .reg .b64 d<6>;
    ld.param.u64 d0, [x]; ld.param.u64 d1, [y]; ld.param.f32 f0, [a]; ld.param.u32 r0, [n];
    mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, %tid.x;
    mad.lo.s32 r4, r1, r2, r3;
    setp.ge.u32 p, r4, r0; @p bra END;
    mul.wide.u32 d2, r4, 4; add.s64 d3, d0, d2; add.s64 d4, d1, d2;
    cvta.to.global.u64 d3, d3; cvta.to.global.u64 d4, d4;
    ld.global.f32 f1, [d3]; ld.global.f32 f2, [d4];
    fma.rn.f32 f3, f0, f1, f2; st.global.f32 [d4], f3;
END: ret;
}
\0"""
COUNT = 4096
BYTES = ctypes.c_size_t(4 * COUNT)
# CUdevice_attribute: compute capability major and minor.
CC_MAJOR, CC_MINOR = 75, 76
# CUresult: no CUDA-capable device is detected.
NO_DEVICE = 100


class CallError(Exception):
    """An entry point of the driver returned an error, or a wrong result."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.facts = {"call": call, "code": code, "name": name}


def report(check: str, *, ok: bool, **facts: object) -> bool:
    """Print one JSON line and hand back whether the check held."""
    print(json.dumps({"check": check, "ok": ok, **facts}), flush=True)
    return ok


class Probe:
    """The driver's library and what the steps hand on to one another."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.x, self.y = ctypes.c_uint64(), ctypes.c_uint64()

    def call(self, name: str, *arguments: object) -> None:
        """Call an entry point; anything but 0 is an error, under the driver's own name for it."""
        code = getattr(self.cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(code, ctypes.byref(text))
            raise CallError(name, code, (text.value or b"?").decode())

    def driver(self) -> dict[str, object]:
        """The CUDA version the driver supports, its file, and whether it is a stand-in."""
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        return {
            "value": f"{version.value // 1000}.{version.value % 1000 // 10}",
            "unit": "CUDA",
            "file": next((line.split()[-1] for line in lines if "libcuda.so" in line), ""),
            "stand_in": hasattr(self.cuda, "standin_driver"),
        }

    def init(self) -> dict[str, object]:
        """The driver starts up."""
        self.call("cuInit", 0)
        return {}

    def devices(self) -> dict[str, object]:
        """Every visible GPU: name, compute capability, memory in MiB; at least one."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            name = "NO_GPU_VISIBLE"
            raise CallError(self.devices.__name__, NO_DEVICE, name)
        return {"value": [self.device(index) for index in range(count.value)]}

    def device(self, index: int) -> dict[str, object]:
        """What one GPU says of itself."""
        device, name, size = ctypes.c_int(), ctypes.create_string_buffer(96), ctypes.c_size_t()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDeviceGetName", name, 96, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        capability = [ctypes.c_int(), ctypes.c_int()]
        for part, attribute in zip(capability, (CC_MAJOR, CC_MINOR), strict=True):
            self.call("cuDeviceGetAttribute", ctypes.byref(part), attribute, device)
        cc = ".".join(str(part.value) for part in capability)
        return {"name": name.value.decode(), "cc": cc, "mib": size.value >> 20}

    def memory(self) -> dict[str, object]:
        """Two vectors go to the first GPU, and come back as they were."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        for pointer, value in ((self.x, 2.0), (self.y, 3.0)):
            data = struct.pack(f"{COUNT}f", *[value] * COUNT)
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), BYTES)
            self.call("cuMemcpyHtoD_v2", pointer, data, BYTES)
        return self.compare("cuMemcpyDtoH_v2", 3.0)

    def kernel(self) -> dict[str, object]:
        """``y = 10 * x + y`` on the GPU: 23.0, exact in binary32, in every element."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"saxpy")
        values = (self.x, self.y, ctypes.c_float(10.0), ctypes.c_uint(COUNT))
        pointers = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        grid, block = (COUNT // 256, 1, 1), (256, 1, 1)
        arguments = (ctypes.c_void_p * 4)(*pointers)
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, arguments, None)
        self.call("cuCtxSynchronize")
        return self.compare("saxpy", 23.0)

    def compare(self, what: str, wanted: float) -> dict[str, object]:
        """The second vector, read back, is the wanted value in every element."""
        back = ctypes.create_string_buffer(4 * COUNT)
        self.call("cuMemcpyDtoH_v2", back, self.y, BYTES)
        found = set(struct.unpack(f"{COUNT}f", back.raw))
        if found != {wanted}:
            raise CallError(what, 0, f"WRONG_RESULT {sorted(found)[:3]}")
        return {"value": wanted, "expected": wanted, "tolerance": 0.0}


def held(name: str, step: Callable[[], dict[str, object]]) -> bool:
    """Take one step and report it."""
    try:
        return report(name, ok=True, **step())
    except CallError as error:
        return report(name, ok=False, error=error.facts)
    except AttributeError as error:
        facts = {"call": name, "code": 0, "name": f"MISSING_ENTRY_POINT {error}"}
        return report(name, ok=False, error=facts)


def main() -> int:
    """Take the steps up to the first that does not hold; 0 when all do."""
    try:
        probe = Probe()
    except OSError as error:
        facts = {"call": "dlopen", "code": 0, "name": f"LIBCUDA_NOT_FOUND {error}"}
        return int(not report("driver", ok=False, error=facts))
    steps = (probe.driver, probe.init, probe.devices, probe.memory, probe.kernel)
    return int(not all(held(step.__name__, step) for step in steps))


if __name__ == "__main__":
    sys.exit(main())
