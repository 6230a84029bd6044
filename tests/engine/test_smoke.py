"""The smoke ladder on a real engine, with a small image made of this machine's own Python."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpulayers.engine import process
from gpulayers.engine.docker import LABEL, DockerEngine
from gpulayers.errors import GpuNotProvenError
from gpulayers.refs import ImageRef, Platform
from gpulayers.smoke import checks
from gpulayers.smoke.classes import Class, Status
from gpulayers.smoke.model import Check, Level, LevelOutcome
from gpulayers.smoke.run import Options, Subject, run

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "engine"), str(ROOT / "tests" / "standin")]
import python_tree  # noqa: E402
from standin_driver import StandIn  # noqa: E402

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]
INIT = """
import os, signal, sys
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
"""
DOCKERFILE = """
FROM scratch
COPY root/ /
ENV PATH=/usr/bin:/bin HOME=/home
USER 10001:0
ENTRYPOINT {entrypoint}
"""
GOOD = """
import json, os
cell = json.loads(os.environ["GPULAYERS_CELL"])
open(os.environ["HOME"] + "/x", "w").close()
print(json.dumps({"check": "cell", "ok": cell["cuda"] == "12.6", "value": os.getuid()}))
"""
BAD = """
import json, sys
print(json.dumps({"check": "version", "ok": False, "value": "1.0", "expected": "2.0"}))
sys.exit(1)
"""


@dataclass(frozen=True)
class Bench:
    """A folder to build from, a registry to push to, and the images made so far."""

    folder: Path
    registry: str
    made: list[ImageRef]

    def image(self, name: str, entrypoint: list[str]) -> ImageRef:
        """Build and push an image with an entrypoint, and name it by digest."""
        dockerfile, answer = self.folder / f"{name}.Dockerfile", self.folder / f"{name}.json"
        dockerfile.write_text(DOCKERFILE.format(entrypoint=json.dumps(entrypoint)))
        ref = ImageRef.parse(f"{self.registry}/smoke-test/{name}")
        output = f"type=image,name={ref.name},push=true"
        built = process.run(
            ["docker", "buildx", "build", f"--file={dockerfile}", f"--output={output}",
             "--provenance=false", f"--metadata-file={answer}", str(self.folder)]
        )  # fmt: skip
        assert built.ok, built.stderr
        self.made.append(ref.with_digest(json.loads(answer.read_text())["containerimage.digest"]))
        return self.made[-1]


@pytest.fixture(scope="module")
def bench(registry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")
    python_tree.make(folder / "root")
    (folder / "root" / "init.py").write_text(INIT)
    bench = Bench(folder, registry, [])
    yield bench
    for ref in bench.made:
        DockerEngine().remove_image(ref)


@pytest.fixture(scope="module")
def image(bench: Bench) -> ImageRef:
    return bench.image("good", ["python", "/init.py"])


def subject(image: ImageRef) -> Subject:
    cell = {"os": "debian12", "cuda": "12.6"}
    return Subject(image=image, platform=Platform("linux", "amd64"), cell=cell, wheels={})


def check(text: str, level: Level = Level.CPU) -> Check:
    return Check(layer="test", name=f"{level}_test.py", level=level, text=text)


def climb(image: ImageRef, *scripts: Check, **options: object) -> tuple[LevelOutcome, ...]:
    asked = {"levels": (Level.CPU,), "timeout_s": 30.0, **options}
    return run(DockerEngine(), subject(image), scripts, options=Options(**asked)).levels  # type: ignore[arg-type]  # options of several types


def left_behind(image: ImageRef) -> str:
    label = f"label={LABEL}={image.digest}"
    return process.run(["docker", "ps", "-aq", "--filter", label]).stdout


def test_a_passing_check_passes_and_leaves_nothing(image: ImageRef) -> None:
    (outcome,) = climb(image, check(GOOD))
    assert (outcome.status, outcome.text) == (Status.PASSED, "")
    assert [line.value for line in outcome.scripts[0].lines] == ["12345"]
    assert outcome.scripts[-1].script == "image/signals"
    assert left_behind(image) == ""


def test_a_failing_check_fails_and_the_next_one_still_runs(image: ImageRef) -> None:
    (outcome,) = climb(image, check(BAD), check("raise SystemError('oh')"), check(GOOD))
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.CHECK_FAILED)
    assert "version: wanted 2.0, found 1.0" in outcome.text
    assert "said: SystemError: oh" in outcome.text
    assert outcome.scripts[2].ok
    assert left_behind(image) == ""


def test_a_hanging_check_is_ended_in_time_and_leaves_nothing(image: ImageRef) -> None:
    begin = time.monotonic()
    script = check("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)")
    (outcome,) = climb(image, script, timeout_s=3.0)
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.TIMED_OUT)
    assert time.monotonic() - begin < 20
    assert left_behind(image) == ""


def test_a_missing_entrypoint_is_told_from_a_failing_check(bench: Bench) -> None:
    image = bench.image("lost", ["/usr/bin/nosuch"])
    (outcome,) = climb(image, check(GOOD))
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.COMMAND_MISSING)
    assert "/usr/bin/nosuch" in outcome.text
    assert left_behind(image) == ""


def test_an_entrypoint_that_ends_at_once_is_told(bench: Bench) -> None:
    (outcome,) = climb(bench.image("brief", ["python", "-c", "0"]), check(GOOD))
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.ENDED_EARLY)


def test_an_image_that_does_not_stop_at_sigterm_fails(bench: Bench) -> None:
    # As the first process of its container, Python gets no signal that it has not asked for.
    (outcome,) = climb(bench.image("deaf", []), check(GOOD))
    assert (outcome.status, outcome.cls) == (Status.FAILED, Class.CHECK_FAILED)
    assert "signals: wanted exit 143 within 5 s of SIGTERM, found exit 137" in outcome.text


def test_an_image_that_is_not_there_is_not_judged(image: ImageRef) -> None:
    (outcome,) = climb(image.with_digest(f"sha256:{'0' * 64}"), check(GOOD))
    assert (outcome.status, outcome.cls) == (Status.NOT_RUN, Class.IMAGE_NOT_PULLED)


def gpu_checks() -> tuple[Check, ...]:
    found = checks.read([("cuda", ROOT / "layers" / "cuda" / "smoke")])
    return tuple(script for script in found if script.level is Level.GPU)


def test_a_machine_without_a_gpu_does_not_run_the_gpu_level(image: ImageRef) -> None:
    if DockerEngine().has_cdi_device("nvidia.com/gpu") or Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    options = Options(levels=(Level.GPU,))
    report = run(DockerEngine(), subject(image), gpu_checks(), options=options)
    assert (report.status, report.cls) == (Status.NOT_RUN, Class.ENGINE_NO_GPU_SUPPORT)
    assert "CDI devices: none" in report.text
    assert not report.gpu_proven
    assert left_behind(image) == ""
    with pytest.raises(GpuNotProvenError, match="wanted a kernel computed by a real GPU"):
        report.demand_gpu()


def gpu_level(image: ImageRef, kind: str) -> LevelOutcome:
    (outcome,) = climb(image, *gpu_checks(), levels=(Level.GPU,), cdi_kind=kind)
    return outcome


def test_a_stand_in_driver_is_simulated_and_never_passed(image: ImageRef, standin: StandIn) -> None:
    standin.install()
    outcome = gpu_level(image, standin.kind)
    assert (outcome.status, outcome.cls) == (Status.SIMULATED, Class.STAND_IN_DRIVER)
    assert not outcome.gpu_proven
    results = {line.check: line.ok for line in outcome.scripts[0].lines}
    assert results == {"driver": True, "init": True, "devices": True, "memory": True,
                       "kernel": False}  # fmt: skip
    assert "NVIDIA L4" in outcome.scripts[0].lines[2].value


@pytest.mark.parametrize(
    ("code", "cls"),
    [(100, Class.NO_GPU), (802, Class.NOT_READY), (803, Class.DRIVER_MISMATCH)],
)
def test_a_broken_host_is_not_the_images_fault(
    image: ImageRef, standin: StandIn, code: int, cls: Class
) -> None:
    standin.install(f"fail = cuInit:{code}")
    outcome = gpu_level(image, standin.kind)
    assert (outcome.status, outcome.cls) == (Status.NOT_RUN, cls)
    assert f"({code})" in outcome.text


def test_a_stale_cdi_spec_is_not_the_images_fault(image: ImageRef, standin: StandIn) -> None:
    standin.install()
    (standin.files / "nvidia-smi").unlink()
    outcome = gpu_level(image, standin.kind)
    assert (outcome.status, outcome.cls) == (Status.NOT_RUN, Class.CDI_SPEC_BROKEN)
    assert left_behind(image) == ""
