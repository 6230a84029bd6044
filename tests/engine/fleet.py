"""Projects that are really built: the demo of this checkout, and a small one of our own."""

import json
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulayers.engine import process
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import Registry
from gpulayers.refs import ImageRef

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo"
REPORT = Path(".gpulayers", "report.json")
LOCK = "matrix.lock.toml"
BUILD_S = 900.0
DEMO_S = 1200.0
# 1980-01-01, the one time that files of images have.
EPOCH = 315532800

MATRIX = """\
schema = 1

[images]
name = "gpu"
registry = "{root}"

[axes]
os = ["debian12", "debian13"]
python = ["3.11"]
cuda = ["12.6"]
framework = ["cupy==13.6.0"]
model = ["none", "alpha", "beta"]

{bases}
[python."3.11"]
sources = ["debian:bookworm"]

[framework.cupy]
cuda-components = ["cudart", "nvrtc"]

[model.alpha]
path = "models/alpha"
smoke = "models/alpha/smoke"

[model.beta]
path = "models/beta"
check = "models/beta/check.py"
"""
BASE = """\
[base.{os}]
sources = ["{source}"]
"""
SMOKE = """\
import json, pathlib
text = pathlib.Path("/opt/models/alpha/words.txt").read_text()
print(json.dumps({"check": "alpha", "ok": text.startswith("alpha"), "value": text}))
"""
FILES = {
    "models/alpha/words.txt": "alpha 1\n",
    "models/alpha/smoke/cpu_alpha.py": SMOKE,
    "models/beta/words.txt": "beta 1\n",
    "models/beta/check.py": "print('beta is as it should be')\n",
}


@dataclass(frozen=True)
class Image:
    """An image of a report."""

    table: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.table[name]

    @property
    def repository(self) -> str:
        """``HOST/PATH`` without tag and digest."""
        return str(self.ref).partition("@")[0]

    def digests(self) -> list[tuple[str, str]]:
        """Step and digest of each layer, lowest first."""
        return [(layer["step"], layer["digest"]) for layer in self.layers]


@dataclass(frozen=True)
class Built:
    """A build that ended: what it said, and its report by tag."""

    finished: Finished
    report: Mapping[str, Any]
    images: Mapping[str, Image]

    @property
    def said(self) -> str:
        """Everything, for messages of tests."""
        return f"{self.finished.stdout}\n{self.finished.stderr}"

    @property
    def exit_codes(self) -> set[int]:
        """The program's exit code, and the one that its report says: one and the same."""
        return {self.finished.code, int(self.report.get("exit_code", -1))}

    @property
    def statuses(self) -> set[str]:
        """All statuses that an image has."""
        return {str(image.status) for image in self.images.values()}


def built(finished: Finished, report: Path) -> Built:
    """What a report file says, beside what was said."""
    table = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {"images": []}
    images = {image["tag"]: Image(image) for image in table["images"]}
    return Built(finished=finished, report=table, images=images)


@dataclass(frozen=True)
class Project:
    """A folder with a matrix, and the registry path that it is built to."""

    folder: Path
    root: str
    env: Mapping[str, str]

    def gpulayers(self, *words: str) -> Finished:
        """Run our command line in the folder."""
        argv = [sys.executable, "-m", "gpulayers", *words, "--registry", self.root]
        return process.run(argv, cwd=self.folder, env=self.env, timeout_s=BUILD_S)

    def build(self, *words: str) -> Built:
        """Run the main job."""
        (self.folder / REPORT).unlink(missing_ok=True)
        return built(self.gpulayers("build", *words), self.folder / REPORT)

    def copy(self, folder: Path, root: str = "") -> "Project":
        """The same project, lock and records elsewhere; with another root, as never built."""
        shutil.copytree(self.folder, folder)
        return Project(folder=folder, root=root or self.root, env=self.env)

    def write(self, path: str, text: str) -> None:
        """Give a file this text."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def change(self, path: str, old: str, new: str) -> None:
        """Put other words into a file."""
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}"
        self.write(path, text.replace(old, new))


def run_demo(checkout: Project) -> Built:
    """Run what `make demo` runs."""
    (checkout.folder / REPORT).unlink(missing_ok=True)
    argv = [sys.executable, str(ROOT / "tools" / "demo.py")]
    finished = process.run(argv, cwd=ROOT, env=checkout.env, timeout_s=DEMO_S)
    return built(finished, checkout.folder / REPORT)


def read_lock(folder: Path) -> dict[str, Any]:
    """The lock of a project as its TOML says it."""
    return tomllib.loads((folder / LOCK).read_text(encoding="utf-8"))


def has_bases(checkout: Project, client: Registry) -> bool:
    """Whether a project has a lock, and the registry those of its bases that we made."""
    if not (checkout.folder / LOCK).is_file():
        return False
    made = [base["digest"] for base in read_lock(checkout.folder)["base"] if not base["repository"]]
    refs = [ImageRef.parse(f"{checkout.root}/base@{digest}") for digest in made]
    return all(client.resolve_many(refs).values())


def base_tables(lock: Mapping[str, Any], root: str) -> str:
    """Tables that take the bases of another project by digest, whoever made them."""
    tables = []
    for base in lock["base"]:
        source = f"{base['repository'] or f'{root}/base'}@{base['digest']}"
        suite = f'suite = "{base["suite"]}"\n' if base["suite"] else ""
        tables.append(BASE.format(os=base["os"], source=source) + suite)
    return "\n".join(tables)


def make(folder: Path, root: str, bases: str, env: Mapping[str, str]) -> Project:
    """Write the small project: two OS, one framework, two models and none."""
    project = Project(folder=folder, root=root, env=env)
    project.write("matrix.toml", MATRIX.format(root=root, bases=bases))
    for path, text in FILES.items():
        project.write(path, text)
    return project


def has_private_engine() -> bool:
    """Whether the engine is the one of this checkout, whose programs lie beside it."""
    host = os.environ.get("DOCKER_HOST", "")
    return host.startswith("unix:///run/gpulayers-") and (ROOT / ".engine/bin/dockerd").exists()


def wait_until(is_so: Callable[[], bool], *, deadline_s: float, why: str) -> None:
    """Ask again and again; fail with the reason when it never is so."""
    until = time.monotonic() + deadline_s
    while not is_so():
        assert time.monotonic() < until, why
        time.sleep(0.1)
