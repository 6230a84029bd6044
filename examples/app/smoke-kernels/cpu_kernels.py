"""Does the library that nvcc made load, and was it made for this CUDA?"""

import json
import os

import kernels

cuda = json.loads(os.environ["GPULAYERS_CELL"])["cuda"]
found = kernels.library.built_for()
value = f"{found // 1000}.{found % 1000 // 10}"
print(json.dumps({"check": "kernels", "ok": value == cuda, "value": value, "expected": cuda}))
