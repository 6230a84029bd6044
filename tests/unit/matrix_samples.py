"""Right matrices for tests: the text of one, and the type with every part replaceable."""

from pathlib import Path

from gpulayers.matrix.model import Axes, Budget, Cell, Exclude, Images, Matrix, Recipe
from gpulayers.refs import Platform
from gpulayers.versions import MajorMinor, Pin

SMALL = """\
schema = 1

[images]
name = "gpu"
registry = "127.0.0.1:5000/acme"

[axes]
os = ["debian12"]
python = ["3.12"]
cuda = ["12.8"]
framework = ["torch==2.8.0"]

[base.debian12]
sources = ["docker.io/library/debian:12-slim"]
"""

FULL = """\
schema = 1

[images]
name = "team/gpu"
registry = "127.0.0.1:5000/acme"
tag = "{framework}-{cuda}-{python}-{os}-{model}"
channels = ["edge", "beta", "stable"]
platforms = ["linux/amd64", "linux/arm64"]
os-packages = ["ca-certificates"]
user = "1000:100"
env = { OMP_NUM_THREADS = "4" }

[fleet.ci]
driver = "535.183.01"
gpus = ["T4", "L4"]

[fleet.edge]
driver = "jetpack6"
gpus = ["Orin"]

[axes]
os = ["debian12", "debian13"]
python = ["3.12"]
cuda = ["12.6", "12.8"]
framework = ["torch==2.7.1", "jax==0.7.2"]
model = ["none", "minilm", "digits", "tiny", "boxed"]

[[exclude]]
match = { os = "debian13", cuda = "12.6" }
reason = "nobody asked for it"

[[exclude]]
match.framework = "jax==*"
match.model = "minilm,digits,tiny,boxed"
reason = "the models need torch"

[[include]]
os = "debian12"
python = "3.11"
cuda = "12.4"
framework = "torch==2.6.0"
model = "none"

[base.debian12]
sources = ["docker.io/library/debian:12-slim", "bootstrap:bookworm"]

[base.debian13]
sources = ["docker.io/library/debian:13-slim"]
suite = "trixie"
os-packages = ["libgomp1"]

[python."3.11"]
sources = ["debian:bookworm", "standalone"]

[model.minilm]
path = "models/minilm"
check = "models/minilm/check.py"
smoke = "models/smoke"
requirements = ["tokenizers>=0.20"]

[model.digits]
package = "digits-weights==1.0"

[model.tiny]
huggingface = "acme/tiny"
revision = "v1.0"
files = ["*.safetensors", "config.json"]
place = "reference"

[model.boxed]
oci = "registry.example/models/boxed:1"
check = "models/minilm/check.py"

[app.web]
match = { framework = "torch==2.7.1", model = "none" }
flavour = "devel"
os-packages = ["jq"]
requirements = ["uvicorn>=0.30"]
requirements-file = "web/requirements.txt"
extensions = ["web/fast"]
source = "web"
leave-out = ["**/*.log", "fast", "smoke"]
target = "/srv/web"
env = { WEB_LEVEL = "info" }
ports = ["8080", "9090/udp"]
user = "2000:0"
workdir = "/srv/web"
entrypoint = ["python", "-m", "web"]
command = ["--port", "8080"]
smoke = "web/smoke"

[app.web.health-check]
command = ["python", "-m", "web.healthy"]
interval-s = 10
timeout-s = 2
start-s = 1
retries = 4

[framework.torch]
cuda-components = ["nvrtc"]
requirements = ["numpy>=2"]

[budget]
image-mb = 6000
layer-mb = 2000

[recipe]
big-wheel-mb = 30
max-layers = 60
model-layer-mb = 500
"""


def write(folder: Path, text: str) -> Path:
    """The text as a project's matrix.toml, with the files of its models beside it."""
    (folder / "models" / "minilm").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "smoke").mkdir(exist_ok=True)
    (folder / "models" / "minilm" / "check.py").write_text("")
    (folder / "web" / "fast").mkdir(parents=True, exist_ok=True)
    (folder / "web" / "smoke").mkdir(exist_ok=True)
    (folder / "web" / "requirements.txt").write_text("httpx>=0.27\n")
    (folder / "web" / "fast" / "setup.py").write_text("")
    path = folder / "matrix.toml"
    path.write_text(text, encoding="utf-8")
    return path


def cell(
    *,
    os: str = "debian12",
    python: str = "3.12",
    cuda: str = "12.8",
    framework: str = "torch==2.8.0",
    model: str = "none",
) -> Cell:
    """A cell from values as matrix.toml spells them."""
    return Cell(
        os=os,
        python=MajorMinor.parse(python),
        cuda=MajorMinor.parse(cuda),
        framework=Pin.parse(framework),
        model=model,
    )


def axes(
    *,
    os: tuple[str, ...] = ("debian12",),
    python: tuple[str, ...] = ("3.12",),
    cuda: tuple[str, ...] = ("12.8",),
    framework: tuple[str, ...] = ("torch==2.8.0",),
    model: tuple[str, ...] = ("none",),
) -> Axes:
    """Axes from values as matrix.toml spells them."""
    return Axes(
        os=os,
        python=tuple(map(MajorMinor.parse, python)),
        cuda=tuple(map(MajorMinor.parse, cuda)),
        framework=tuple(map(Pin.parse, framework)),
        model=model,
    )


def matrix(
    axes: Axes,
    *,
    excludes: tuple[Exclude, ...] = (),
    includes: tuple[Cell, ...] = (),
    tag: str | None = None,
) -> Matrix:
    """A matrix of these cells; the rest of it plays no part in selecting and naming."""
    return Matrix(
        path=Path("/project/matrix.toml"),
        images=Images(
            name="gpu",
            registry="127.0.0.1:5000/acme",
            tag=tag,
            channels=("edge", "stable"),
            platforms=(Platform("linux", "amd64"),),
            os_packages=(),
            user="10001:0",
            env={},
        ),
        fleet=(),
        axes=axes,
        excludes=excludes,
        includes=includes,
        bases={},
        pythons={},
        models={},
        apps={},
        frameworks={},
        budget=Budget(image_mb=None, layer_mb=None),
        recipe=Recipe(big_wheel_mb=40, max_layers=40, model_layer_mb=1000),
    )
