"""Runs that are interrupted, or killed at a point that a test waits for, and the run after that."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fleet
import pytest
from conftest import Docker
from fleet import Project
from registry_proxy import Fault, Proxy, Rule
from tiny import GOOD, Maker, tiny_base, tiny_project

from gpulayers.cli import loaded
from gpulayers.cli.loaded import Where
from gpulayers.engine import buildx
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import Registry
from gpulayers.inside import PASSED
from gpulayers.plan.model import Plan
from gpulayers.refs import ImageRef
from gpulayers.workflow import BEFORE

__all__ = ["tiny_base", "tiny_project"]
pytestmark = pytest.mark.timeout(1500)
LIMIT_S = 10.0
WAIT_S = 200.0
SLOW_SMOKE = "import time\ntime.sleep(200)\n"
SMOKE = "layers/base/smoke/cpu_tiny.py"


@contextlib.contextmanager
def started(project: Project, *words: str) -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-m", "gpulayers", *words, "--registry", project.root]
    env, pipe = {**os.environ, **project.env}, subprocess.PIPE
    with subprocess.Popen(
        argv,
        cwd=project.folder,
        env=env,
        text=True,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def wait_until(is_so: Callable[[], bool], child: "subprocess.Popen[str]", why: str) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < until, why
        time.sleep(0.05)


def is_running(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().replace(b"\0", b" ").strip() == word.encode():
                return True
    return False


def waiting_step() -> str:
    """A command that no other one is the same as."""
    return f"sleep 250.{secrets.randbelow(10**8):08}1"


def leftovers(project: Project) -> list[str]:
    """Files that were not written to their end."""
    return [str(path) for path in project.folder.rglob(".*.new")]


def containers(docker: Docker, project: Project) -> str:
    """Those of smoke tests of a project's images."""
    form = "--format={{.Names}} {{.Image}}"
    lines = docker("ps", "--all", "--filter=name=gpulayers-smoke-", form).stdout.splitlines()
    return "\n".join(line for line in lines if f"{project.root}/" in line)


def report_of(project: Project) -> fleet.Built:
    path = project.folder / fleet.REPORT
    ended = Finished(argv=(), code=130, stdout="", stderr="", seconds=0, timed_out=False)
    return fleet.built(ended, path)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_a_build_ends_all_of_it_in_time(
    signum: signal.Signals, tiny_project: Maker, client: Registry
) -> None:
    step = waiting_step()
    project = tiny_project(slow=f"{step}\n", good=GOOD)
    with started(project, "build") as build:
        wait_until(lambda: is_running(step), build, "the step never ran")
        begin = time.monotonic()
        build.send_signal(signum)
        out, err = build.communicate(timeout=30)
        spent = time.monotonic() - begin
    assert build.returncode == 130, out + err
    assert spent < LIMIT_S
    while time.monotonic() - begin < LIMIT_S and is_running(step):
        time.sleep(0.05)
    assert not is_running(step)
    report = report_of(project)
    assert report.exit_codes == {130}
    by_model = {image.cell["model"]: image for image in report.images.values()}
    assert by_model["slow"].status == "not-tried"
    assert not any("slow" in tag for tag in client.tags(f"{project.root}/gpu"))
    assert leftovers(project) == []


def test_an_interrupt_of_a_smoke_test_leaves_no_container_and_moves_no_tag(
    tiny_project: Maker, docker: Docker, client: Registry
) -> None:
    project = tiny_project(good=GOOD)
    project.write(SMOKE, SLOW_SMOKE)
    with started(project, "build") as build:
        wait_until(lambda: bool(containers(docker, project)), build, "no container came")
        begin = time.monotonic()
        build.send_signal(signal.SIGINT)
        out, err = build.communicate(timeout=30)
        assert time.monotonic() - begin < LIMIT_S
    assert build.returncode == 130, out + err
    assert containers(docker, project) == ""
    (image,) = report_of(project).images.values()
    assert (image.status, image.tags, image.failure) == ("built", [], None)
    assert image.gates["smoke"]["status"] == "not-run"
    assert all(tag.startswith("staging-") for tag in client.tags(f"{project.root}/gpu"))
    assert leftovers(project) == []


def test_a_second_interrupt_ends_at_once(tiny_project: Maker) -> None:
    step = waiting_step()
    project = tiny_project(slow=f"{step}\n")
    with started(project, "build") as build:
        wait_until(lambda: is_running(step), build, "the step never ran")
        build.send_signal(signal.SIGINT)
        time.sleep(0.1)
        begin = time.monotonic()
        build.send_signal(signal.SIGINT)
        build.communicate(timeout=30)
        assert time.monotonic() - begin < 3
    assert build.returncode == 130


def ends_right(project: Project, client: Registry) -> None:
    """The run after a killed one: all is made, tagged and told, and nothing is left of before."""
    build = project.build()
    assert build.exit_codes == {0}, build.said
    for tag, image in build.images.items():
        assert image.tags == [f"{tag}-{image.key[:12]}", f"{tag}-edge"]
        for each in image.tags:
            assert client.resolve(ImageRef.parse(f"{project.root}/gpu:{each}")) == image.digest
    assert leftovers(project) == []
    assert (project.folder / ".gpulayers" / "lock").read_text() == ""


def kill(child: "subprocess.Popen[str]") -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGKILL


def test_killed_while_a_step_runs(tiny_project: Maker, client: Registry) -> None:
    step = f"sleep 6.{secrets.randbelow(10**8):08}1"
    project = tiny_project(slow=f"{step}\n")
    with started(project, "build") as build:
        wait_until(lambda: is_running(step), build, "the step never ran")
        kill(build)
    (project.folder / ".gpulayers" / ".report.json.0123abcd.new").write_text("half")
    ends_right(project, client)


def test_killed_while_a_smoke_test_runs(
    tiny_project: Maker, docker: Docker, client: Registry
) -> None:
    project = tiny_project(good=GOOD)
    fast = (project.folder / SMOKE).read_text()
    project.write(SMOKE, SLOW_SMOKE)
    with started(project, "build") as build:
        wait_until(lambda: bool(containers(docker, project)), build, "no container came")
        kill(build)
    assert containers(docker, project) != ""
    project.write(SMOKE, fast)
    ends_right(project, client)
    assert containers(docker, project) == ""


class Gate:
    """Holds requests of one kind until it is opened; then they fail, as their sender is gone."""

    def __init__(self, is_meant: Callable[[str, str], bool], fault: int) -> None:
        self.is_meant, self.fault = is_meant, fault
        self.reached, self.opened = threading.Event(), threading.Event()

    @property
    def rule(self) -> Rule:
        def hold(method: str, path: str) -> Fault | None:
            if self.opened.is_set() or not self.is_meant(method, path):
                return None
            self.reached.set()
            self.opened.wait(WAIT_S)
            return Fault(method=method, status=self.fault)

        return hold


def is_blob(method: str, path: str) -> bool:
    return method == "PUT" and "/gpu/blobs/" in path


def is_content_tag(method: str, path: str) -> bool:
    return method == "PUT" and "/gpu/manifests/tiny" in path and not path.endswith("-edge")


def is_channel_tag(method: str, path: str) -> bool:
    return method == "PUT" and path.endswith("-edge")


@pytest.mark.parametrize(
    ("is_meant", "fault"),
    [(is_blob, -1), (is_content_tag, -1), (is_content_tag, -2), (is_channel_tag, -1)],
    ids=["pushing", "before-the-first-tag", "after-the-first-tag", "before-the-last-tag"],
)
def test_killed_while_something_is_on_its_way_to_the_registry(
    is_meant: Callable[[str, str], bool],
    fault: int,
    tiny_project: Maker,
    client: Registry,
    registry: str,
) -> None:
    gate = Gate(is_meant, fault)
    with Proxy(registry, rule=gate.rule) as proxy:
        project = tiny_project(root=f"{proxy.host}/t-{secrets.token_hex(4)}", good=GOOD)
        with started(project, "build") as build:
            wait_until(gate.reached.is_set, build, "that request never came")
            kill(build)
        gate.opened.set()
        ends_right(project, client)
        moves = json.loads((project.folder / ".gpulayers" / "channels.json").read_text())["moves"]
        assert {move["new"] for move in moves} == {
            client.resolve(ImageRef.parse(move["ref"])) for move in moves
        }


def is_mount(method: str, path: str) -> bool:
    return method == "POST" and "/gpu/blobs/uploads/?mount=" in path


def is_untagged(method: str, path: str) -> bool:
    return method == "PUT" and "/gpu/manifests/sha256" in path


def is_staging_tag(method: str, path: str) -> bool:
    return method == "PUT" and "/gpu/manifests/staging-" in path


def is_step(method: str, path: str) -> bool:
    return method == "PUT" and "/gpu-steps/manifests/" in path


def is_look_of_check(method: str, path: str) -> bool:
    """What `docker pull` asks first, for the container of the checks."""
    return method in {"GET", "HEAD"} and "/gpu/manifests/sha256" in path


ASSEMBLY: dict[str, tuple[Callable[[str, str], bool], int]] = {
    "before-a-step-is-there": (is_step, -1),
    "after-a-step-is-there": (is_step, -2),
    "before-a-layer-is-mounted": (is_mount, -1),
    "after-a-layer-is-mounted": (is_mount, -2),
    "before-the-config": (is_blob, -1),
    "after-the-config": (is_blob, -2),
    "before-the-manifest": (is_untagged, -1),
    "after-the-manifest": (is_untagged, -2),
    "before-its-checks": (is_look_of_check, -1),
    "before-the-staging-tag": (is_staging_tag, -1),
    "after-the-staging-tag": (is_staging_tag, -2),
}


@pytest.mark.parametrize("point", ASSEMBLY)
def test_killed_while_an_image_is_put_together(
    point: str, tiny_project: Maker, tiny_base: str, client: Registry, registry: str
) -> None:
    is_meant, fault = ASSEMBLY[point]
    gate = Gate(is_meant, fault)
    with Proxy(registry) as proxy:
        root = f"{proxy.host}/t-{secrets.token_hex(4)}"
        project = tiny_project(root=root, good=GOOD, more=GOOD)
        copied = buildx.find().copy(tiny_base, f"{root}/base:tiny", timeout_s=60)
        assert copied.ok, copied.stderr
        first = project.build("--only", "model=good")
        assert first.exit_codes == {0}, first.said
        proxy.rule = gate.rule
        with started(project, "build") as build:
            wait_until(gate.reached.is_set, build, "that request never came")
            kill(build)
        gate.opened.set()
        (image,) = (i for i in plan_of(project).images if i.cell.model == "more")
        is_tagged = client.resolve(ImageRef.parse(f"{root}/gpu:{image.staging}")) is not None
        assert is_tagged == (point == "after-the-staging-tag")
        ends_right(project, client)
        record = json.loads((project.folder / fleet.REPORT).read_text())["images"]
        (made,) = (one for one in record if one["key"] == image.key)
        said = BEFORE if is_tagged else PASSED
        assert made["gates"]["identity"]["text"] == said


def plan_of(project: Project) -> Plan:
    where = Where(project=project.folder, matrix=None, only=(), registry=project.root)
    found = loaded.load(where)
    return found.plan(loaded.fitting_lock(found))


def test_killed_while_locking(tiny_project: Maker, client: Registry, registry: str) -> None:
    gate = Gate(lambda method, path: method in {"GET", "HEAD"} and "/tiny-base/" in path, -1)
    with Proxy(registry, rule=gate.rule) as proxy:
        project = tiny_project(good=GOOD)
        for path in ("matrix.toml",):
            project.change(path, f"{registry}/tiny-base", f"{proxy.host}/tiny-base")
        before = (project.folder / fleet.LOCK).read_text()
        with started(project, "lock") as lock:
            wait_until(gate.reached.is_set, lock, "no base was asked for")
            assert (project.folder / fleet.LOCK).read_text() == before
            kill(lock)
        gate.opened.set()
        assert (project.folder / fleet.LOCK).read_text() == before
        ends_right(project, client)
        assert (project.folder / fleet.LOCK).read_text() != before
