"""The driver that only answers, built, and brought into containers of the private engine."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from missing import missing

from gpulayers.engine import process
from gpulayers.engine.docker import DockerEngine

SOURCE = Path(__file__).parents[1] / "standin"
sys.path.insert(0, str(SOURCE))
import cdi  # noqa: E402

SHARED_CDI_DIRS = ("/etc/cdi", "/var/run/cdi")


@dataclass(frozen=True)
class StandIn:
    """The built stand-in driver, and a CDI kind and file of this test run alone."""

    files: Path
    spec: Path
    kind: str

    def install(self, *lines: str) -> None:
        """Let the engine know the stand-in, with lines for its file that make it fail on demand."""
        with (self.files / "standin.conf").open("a") as file:
            # Not as variables: the engine gives those of a CDI spec to no `docker exec`.
            file.writelines(f"{line}\n" for line in lines)
        cdi.write(self.spec, cdi.spec(self.kind, self.files))
        end = time.monotonic() + 5
        while not DockerEngine().has_cdi_device(self.kind) and time.monotonic() < end:
            time.sleep(0.1)


@contextmanager
def built(folder: Path, config: pytest.Config) -> Iterator[StandIn]:
    """The stand-in, built into a folder; its CDI file goes away afterwards."""
    folders = [d for d in DockerEngine().info().cdi_spec_dirs if d not in SHARED_CDI_DIRS]
    if not folders or not shutil.which("gcc") or not shutil.which("make"):
        missing(config, "wanted gcc, make and a private engine with a CDI folder of its own")
    made = process.run(["make", "-s", "-C", str(SOURCE), f"OUT={folder}"])
    assert made.ok, made.stderr
    shutil.copy(SOURCE / "standin.conf", folder)
    name = f"gpu{os.getpid()}"
    spec = Path(folders[0]) / f"standin-{name}.json"
    yield StandIn(folder, spec, f"standin.test/{name}")
    spec.unlink(missing_ok=True)
