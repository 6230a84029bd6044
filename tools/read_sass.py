"""Reads out of wheels for which GPUs they carry code, without any tool of NVIDIA.

``python tools/read_sass.py FILE.whl …`` prints, for each wheel, what a row of the facts wants:
``sms`` (SASS), ``exact_sms`` (SASS for that very chip only, ``sm_90a``) and ``ptx``, and which
files have it.
"""

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from gpulayers import fatbin
from gpulayers.fatbin import Code


def of_wheel(wheel: Path) -> tuple[Code, list[str]]:
    """What all shared objects of a wheel carry together, and the files that add to it."""
    found = Code()
    files = []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if ".so" not in Path(name).name:
                continue
            path = Path(archive.extract(name, folder))
            before = len(found.sms | found.exact_sms | found.ptx)
            with path.open("rb") as file:
                found.add(fatbin.read(file))
            if len(found.sms | found.exact_sms | found.ptx) > before:
                files.append(name)
            path.unlink()  # the biggest have gigabytes
    return found, files


def shown(archs: Sequence[int]) -> str:
    """``["7.5", "9.0"]``, as a row has it."""
    return "[" + ", ".join(f'"{arch // 10}.{arch % 10}"' for arch in sorted(archs)) + "]"


def main() -> int:
    """Read, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    for wheel in parser.parse_args().wheels:
        code, files = of_wheel(wheel)
        print(wheel.name)
        print(f"  sms = {shown([*code.sms])}")
        print(f"  exact_sms = {shown([*code.exact_sms])}")
        print(f"  ptx = {shown([*code.ptx])}")
        print(f"  in {', '.join(files) or 'no file'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
