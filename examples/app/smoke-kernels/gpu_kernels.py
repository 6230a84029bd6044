"""Do the kernels compute on this GPU?"""

import ctypes
import json

import kernels

numbers = (ctypes.c_float * 3)(1.0, 2.5, -1.0)
code = kernels.library.run(numbers, len(numbers))
if code:
    error = {"call": "kernels.run", "code": code, "name": f"cudaError {code}"}
    print(json.dumps({"check": "add", "ok": False, "error": error}))
else:
    value = list(numbers)
    expected = [2.0, 3.5, 0.0]
    print(
        json.dumps({"check": "add", "ok": value == expected, "value": value, "expected": expected})
    )
