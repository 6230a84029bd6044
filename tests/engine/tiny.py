"""A project whose layers are single files: no index, no archive, each build within seconds.

Each model is a folder with a ``step.sh``, which is all that its step does: a test writes there
what it wants to see.
"""

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import fleet
import pytest
import python_tree
from fleet import Project

from gpulayers.cli import loaded
from gpulayers.cli.loaded import Loaded, Where
from gpulayers.engine import process
from gpulayers.lock import file as lock_file
from gpulayers.lock import wanted
from gpulayers.lock.model import Closure, Lock, LockedBase, LockedModel, LockedPython, Wheel
from gpulayers.matrix.model import FolderModel
from gpulayers.refs import ImageRef

MATRIX = """\
schema = 1

[images]
name = "gpu"
registry = "{root}"

[axes]
os = ["debian12"]
python = ["3.11"]
cuda = ["12.6"]
framework = ["tiny==1.0"]
model = [{models}]

[base.debian12]
sources = ["{base}"]

[base.tools]
sources = ["{base}"]

[python."3.11"]
sources = ["debian:bookworm"]
"""
MODEL = """
[model.{name}]
path = "models/{name}"
"""
LAYER = """\
schema = 1
kind = "{kind}"
description = "A layer of tests."
needs = {needs}
"""
# Process 1 that ends at SIGTERM, as images have tini for.
ENTRYPOINT = """\
entrypoint = ["/bin/sh", "-c", "trap 'exit 143' TERM; \\"$@\\" & wait $!", "init"]
"""
IDENTITY = """
[identity]
distribution = "tiny"
module = "tiny"
"""
FINISH = """\
#!/bin/sh
find /out -exec touch -hd @{{ epoch }} {} +
"""
PYTHON = """\
FROM tools AS {{ stage }}
RUN mkdir -p /out/opt/tiny && echo python >/out/opt/tiny/python && finish

FROM tools AS {{ stage }}-venv
"""
STEP = """\
FROM tools AS {{ stage }}
RUN --mount=type=bind,from={{ context }},target=/run/model <<'STEP'
set -eu
mkdir -p /out/opt/models/{{ model }}
cp /run/model/step.sh /out/opt/models/{{ model }}/
sh /run/model/step.sh
finish
STEP
"""
SMOKE = 'import json\nprint(json.dumps({"check": "tiny", "ok": True}))\n'
FILES = {
    "layers/identity.py": 'print("identity: as the name says")\n',
    "layers/base/layer.toml": LAYER.format(kind="base", needs="[]"),
    "layers/base/Dockerfile.j2": "FROM base AS {{ stage }}\n",
    "layers/base/smoke/cpu_tiny.py": SMOKE,
    "layers/tools/layer.toml": LAYER.format(kind="tools", needs="[]"),
    "layers/tools/Dockerfile.j2": (
        f"FROM tools-base AS tools\nCOPY --chmod=755 <<'SCRIPT' /usr/bin/finish\n{FINISH}SCRIPT\n"
    ),
    "layers/python/layer.toml": LAYER.format(kind="python", needs="[]") + ENTRYPOINT,
    "layers/python/Dockerfile.j2": PYTHON,
    "layers/cuda/layer.toml": LAYER.format(kind="cuda", needs='["python"]'),
    "layers/cuda/Dockerfile.j2": "FROM tools AS {{ stage }}\n",
    "layers/tiny/layer.toml": LAYER.format(kind="framework", needs='["cuda"]') + IDENTITY,
    "layers/tiny/Dockerfile.j2": "FROM tools AS {{ stage }}\n",
    "layers/model/layer.toml": LAYER.format(kind="model", needs='["python"]'),
    "layers/model/Dockerfile.j2": STEP,
}
BASE = """\
FROM {base}
RUN --mount=type=bind,source=root,target=/run/root <<'STEP'
set -e
cd /run/root
for folder in *; do
  case $folder in proc|sys|dev) continue ;; esac
  mkdir -p /$folder
  cp -rn --no-target-directory $folder/. /$folder/.
done
# Python may lie in the home of the one who runs the tests.
chmod a+rx /root
mkdir -p /opt/venv/bin
ln -s /usr/bin/python /opt/venv/bin/python
STEP
ENV PATH=/opt/venv/bin:/usr/bin:/bin
"""
NO_WHEEL = Wheel(
    file="uv-0-py3-none-any.whl",
    name="uv",
    version="0",
    sha256="0" * 64,
    size_bytes=0,
    index="default",
)
GOOD = "echo fine >/out/opt/models/note\n"


def make_base(registry: str, base: str, env: Mapping[str, str], folder: Path) -> str:
    """A base with a shell and Python, by digest."""
    python_tree.make(folder / "root")
    (folder / "Dockerfile").write_text(BASE.format(base=base), encoding="utf-8")
    metadata = folder.with_name(f"{folder.name}.json")
    argv = ["docker", "buildx", "build", "--network=host", "--provenance=false"]
    argv += [f"--output=type=image,name={registry}/tiny-base,push=true"]
    argv += [f"--metadata-file={metadata}", str(folder)]
    done = process.run(argv, env=env, timeout_s=300)
    assert done.ok, done.stderr
    digest = json.loads(metadata.read_text(encoding="utf-8"))["containerimage.digest"]
    return f"{registry}/tiny-base@{digest}"


def make(
    folder: Path, root: str, base: str, env: Mapping[str, str], models: Mapping[str, str]
) -> Project:
    """Write the project with a lock that fits; ``models`` are names and their ``step.sh``."""
    project = Project(folder=folder, root=root, env=env)
    names = ", ".join(f'"{name}"' for name in models)
    text = MATRIX.format(root=root, base=base, models=names)
    project.write("matrix.toml", text + "".join(MODEL.format(name=name) for name in models))
    for path, content in FILES.items():
        project.write(path, content)
    for name, step in models.items():
        # Not the same in two projects, or the builder would have it already.
        project.write(f"models/{name}/step.sh", f"# {root} {name}\n{step}")
    write_lock(project)
    return project


def write_lock(project: Project) -> Lock:
    """Make the lock without asking anybody."""
    where = Where(project=project.folder, matrix=None, only=(), registry=project.root)
    found = loaded.load(where)
    lock = lock_for(found)
    lock_file.write(found.lock_path, lock)
    return lock


def lock_for(found: Loaded) -> Lock:
    """All that the project wants, with no package and no wheel."""
    ask = found.wanted
    return Lock(
        inputs=wanted.digest(ask),
        uv=NO_WHEEL,
        bases=tuple(_base(os, suite, sources, found) for os, suite, sources in ask.bases),
        packages=(),
        pythons=tuple(
            LockedPython(python=python, source="debian", version=python)
            for python, _ in ask.pythons
        ),
        wheels={},
        closures=tuple(
            Closure(python=c.python, platform=c.platform, of=c.of, under=c.under, files=())
            for c in ask.closures
        ),
        models=tuple(_model(found, name) for name in ask.models),
    )


def _base(os: str, suite: str, sources: Sequence[str], found: Loaded) -> LockedBase:
    ref = ImageRef.parse(sources[0])
    return LockedBase(
        os=os,
        platform=found.matrix.images.platforms[0],
        source=sources[0],
        repository=ref.name,
        digest=ref.digest,
        suite=suite,
    )


def _model(found: Loaded, name: str) -> LockedModel:
    model = found.matrix.models[name]
    assert isinstance(model, FolderModel)
    digest, size = wanted.model_digest(model)
    return LockedModel(name=name, digest=digest, size_bytes=size)


@pytest.fixture(scope="session")
def tiny_base(
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    demo_project: Project,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The base of tiny projects, by digest."""
    assert base_tables
    lock = fleet.read_lock(demo_project.folder)
    (base,) = [each for each in lock["base"] if each["os"] == "debian12"]
    name = base["repository"] or f"{demo_project.root}/base"
    folder = tmp_path_factory.mktemp("tiny-base")
    return make_base(registry, f"{name}@{base['digest']}", engine_env, folder)


class Maker:
    """Makes tiny projects: ``tiny_project(good="...", bad="exit 3")``."""

    def __init__(self, folder: Path, registry: str, base: str, env: Mapping[str, str]) -> None:
        self.folder, self.registry, self.base, self.env = folder, registry, base, env

    def __call__(self, *, root: str = "", **models: str) -> Project:
        name = f"t-{secrets.token_hex(4)}"
        place = self.folder / name
        return make(place, root or f"{self.registry}/{name}", self.base, self.env, models)


@pytest.fixture
def tiny_project(
    engine_env: dict[str, str], registry: str, tiny_base: str, tmp_path: Path
) -> Maker:
    """Makes tiny projects that were never built."""
    return Maker(tmp_path, registry, tiny_base, engine_env)


def has(program: str) -> bool:
    """Whether a program is on PATH."""
    return shutil.which(program) is not None
