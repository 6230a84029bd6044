"""The parts of the service: its packages, its extension, the OS's program, and its own files."""

import json
import pathlib
import subprocess

import fastsum
import orjson


def report(check: str, value: object, expected: object) -> None:
    """One line for each thing looked at."""
    ok = value == expected
    print(json.dumps({"check": check, "ok": ok, "value": value, "expected": expected}))


report("fastsum", fastsum.total([1.0, 2.0, 3.5]), 6.5)
report("orjson", orjson.dumps({"a": 1}).decode(), '{"a":1}')
said = subprocess.run(["jq", ".a"], input=b'{"a": 3}', capture_output=True, check=True).stdout
report("jq", said.decode().strip(), "3")
files = [path.name for path in pathlib.Path("/opt/app").rglob("*") if path.is_file()]
report("source", sorted(files), ["__init__.py", "__main__.py", "healthy.py"])
