"""A small project, really built: what is made again, what stops an image, and what moves no tag."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fleet
import pytest
import tomlkit
from conftest import Docker
from fleet import Built, Project

from gpulayers.engine import process
from gpulayers.engine.registry import Registry
from gpulayers.lock.wheels import Question, resolve
from gpulayers.refs import ImageRef, Platform

# The first test that asks for it makes the project, and where there is none yet, the demo.
pytestmark = pytest.mark.timeout(1500)
Mini = tuple[Project, Built]
PLAIN = ("--only", "os=debian12", "--only", "model=none")
BROKEN_WORDS = "beta has no weights for layer 7"


def test_all_images_are_built_gated_and_tagged(mini: Mini, client: Registry) -> None:
    project, build = mini
    assert build.exit_codes == {0}, build.said
    assert (len(build.images), build.statuses) == (6, {"built"})
    for tag, image in build.images.items():
        assert image.tags == [f"{tag}-{image.key[:12]}", f"{tag}-edge"]
        for each in image.tags:
            assert client.resolve(ref(project, each)) == image.digest
        assert image.gates["identity"]["status"] == "passed"


def test_a_second_build_does_nothing_and_says_so(mini: Mini) -> None:
    project, build = mini
    again = project.build()
    assert again.exit_codes == {0}, again.said
    assert again.statuses == {"cached"}
    assert "Nothing to build: the registry has every image already." in again.finished.stdout
    assert digests(again) == digests(build)
    assert again.report["bytes"]["pushed"] == 0


def test_a_model_that_changed_makes_its_own_step_anew_and_nothing_else(
    mini: Mini, tmp_path: Path
) -> None:
    before = mini[1]
    project = mini[0].copy(tmp_path / "project")
    project.write("models/alpha/words.txt", "alpha 2\n")
    after = project.build()
    assert after.exit_codes == {0}, after.said
    for tag, image in after.images.items():
        old = before.images[tag]
        if image.cell["model"] != "alpha":
            assert (image.status, image.key, image.digest) == ("cached", old.key, old.digest)
            continue
        assert image.status == "built"
        assert image.key != old.key
        changed = set(image.digests()) ^ set(old.digests())
        assert {step for step, _ in changed} == {"model-alpha"}
        assert len(changed) == 2
        assert image.digests()[-1] == old.digests()[-1], "the mark of the identity check"
    # What was there before is there still: the tags go back, and nothing is built.
    back = mini[0].build()
    assert (back.statuses, digests(back)) == ({"cached"}, digests(before))


@pytest.fixture(scope="module")
def broken(mini: Mini, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Mini:
    """The project as never built, with a model whose check says no."""
    root = f"{registry}/t-broken-{os.getpid()}-{int(time.time())}"
    project = mini[0].copy(tmp_path_factory.mktemp("broken") / "project", root)
    words = f"import sys\nsys.stderr.write({BROKEN_WORDS!r} + '\\n')\nsys.exit(3)\n"
    project.write("models/beta/check.py", words)
    return project, project.build()


def test_a_broken_step_stops_its_own_images_only(broken: Mini, client: Registry) -> None:
    project, build = broken
    assert build.exit_codes == {6}, build.said
    with_beta = [image for image in build.images.values() if image.cell["model"] == "beta"]
    failed = [image for image in with_beta if image.status == "failed"]
    assert failed, build.said
    # One that was not started yet when the step failed is not tried.
    assert {image.status for image in with_beta} <= {"failed", "not-tried"}
    for image in failed:
        failure = image.failure
        assert (failure["class"], failure["step"]) == ("build-step-failed", "model-beta")
        assert failure["exit"] == 3
        assert any(BROKEN_WORDS in line for line in failure["stderr_tail"])
        assert (image.ref, image.tags) == ("", [])
    assert BROKEN_WORDS in build.finished.stdout
    there = client.tags(f"{project.root}/gpu")
    assert not any("beta" in tag for tag in there)
    rest = [image for image in build.images.values() if image.cell["model"] != "beta"]
    assert len(rest) == 4
    for image in rest:
        assert image.status == "built"
        assert set(image.tags) <= set(there)


def test_the_command_that_repeats_a_failure_fails_in_the_same_way(broken: Mini) -> None:
    image = next(image for image in broken[1].images.values() if image.failure)
    again = process.run(["sh", "-c", image.failure["repeat"]], env=broken[0].env, timeout_s=300)
    assert not again.ok
    assert BROKEN_WORDS in again.stderr


def test_the_same_command_builds_the_same_image_by_hand(
    broken: Mini, mini: Mini, tmp_path: Path
) -> None:
    """Plain bake, told by what a failure prints: no part of us runs."""
    project = broken[0]
    command = next(i for i in broken[1].images.values() if i.failure).failure["repeat"]
    command, _, _ = command.rpartition(" ")
    metadata = tmp_path / "metadata.json"
    target = "cupy13-6-0-debian12-alpha"
    by_hand = f"{command} --metadata-file={metadata} {target}"
    done = process.run(["sh", "-c", by_hand], env=project.env, timeout_s=600)
    assert done.ok, done.stderr
    digest = json.loads(metadata.read_text())[target]["containerimage.digest"]
    assert digest == broken[1].images["cupy13.6.0-debian12-alpha"].digest
    # Nor does it matter where it is pushed to, or in which folder the project lies.
    assert digest == mini[1].images["cupy13.6.0-debian12-alpha"].digest


def test_rendered_files_are_the_same_each_time(mini: Mini, tmp_path: Path) -> None:
    project = mini[0]
    checked = project.gpulayers("render", "--check")
    assert checked.code == 0, checked.stderr
    for name in ("one", "two"):
        assert project.gpulayers("render", "--out", str(tmp_path / name)).ok
    first, second = (texts(tmp_path / name) for name in ("one", "two"))
    assert first == second == texts(project.folder / ".gpulayers" / "render")
    assert len(first) == 7
    (tmp_path / "two" / "docker-bake.json").write_text("{}\n")
    assert project.gpulayers("render", "--check", "--out", str(tmp_path / "two")).code == 13


def smuggle(project: Project, of: str, entry: Mapping[str, Any]) -> None:
    """Put another wheel of the same package into a closure of the lock, with its right hash."""
    path = project.folder / fleet.LOCK
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    closure = next(c for c in document["closure"] if c["of"].startswith(of))
    prefix = entry["name"].replace("-", "_") + "-"
    kept = [str(file) for file in closure["files"] if not str(file).startswith(prefix)]
    assert len(kept) == len(closure["files"]) - 1
    closure["files"] = [*kept, entry["file"]]
    table = tomlkit.table()
    table.update(dict(entry))
    document["wheel"].append(table)
    path.write_text(tomlkit.dumps(document), encoding="utf-8")


def refused_by_identity(project: Project, client: Registry) -> str:
    """Build one image that must be stopped with nothing pushed; what the gate said."""
    build = project.build(*PLAIN)
    assert build.exit_codes == {8}, build.said
    (image,) = build.images.values()
    gate = image.gates["identity"]
    assert (gate["status"], gate["class"]) == ("failed", "identity-mismatch")
    assert image.failure["class"] == "identity-mismatch"
    assert (image.status, image.ref, image.tags) == ("failed", "", [])
    assert client.tags(f"{project.root}/gpu") == ()
    return str(gate["text"])


def wheel(requirement: str, config: Path) -> Mapping[str, Any]:
    """A wheel of the index as a lock spells it."""
    question = Question(
        python="3.11",
        platform=Platform("linux", "amd64"),
        requirements=(requirement,),
        fixed=(),
        stands_in_for=(),
    )
    name = requirement.partition("==")[0]
    found = next(w for w in resolve(question, config=config, indexes={}) if w.name == name)
    table = {"file": found.file, "name": found.name, "version": found.version}
    return {**table, "sha256": found.sha256, "size": found.size_bytes, "index": found.index}


def test_a_smuggled_cuda_is_stopped_by_its_identity(
    mini: Mini, client: Registry, fresh_root: str, tmp_path: Path
) -> None:
    project = mini[0].copy(tmp_path / "project", fresh_root)
    config = project.folder / ".gpulayers" / "inputs" / "uv.toml"
    smuggle(project, "cuda==12.6", wheel("nvidia-cuda-runtime-cu12==12.8.90", config))
    said = refused_by_identity(project, client)
    assert "CUDA runtime: the name says 12.6, installed is 12.8" in said


def test_a_smuggled_framework_is_stopped_by_its_identity(
    mini: Mini, client: Registry, fresh_root: str, tmp_path: Path
) -> None:
    project = mini[0].copy(tmp_path / "project", fresh_root)
    config = project.folder / ".gpulayers" / "inputs" / "uv.toml"
    smuggle(project, "cupy==13.6.0", wheel("cupy-cuda12x==13.5.1", config))
    said = refused_by_identity(project, client)
    assert "cupy-cuda12x: the name says 13.6.0, installed is 13.5.1" in said


def test_without_a_push_everything_is_judged_and_no_tag_moves(
    mini: Mini, client: Registry, fresh_root: str, tmp_path: Path
) -> None:
    project = mini[0].copy(tmp_path / "project", fresh_root)
    build = project.build("--no-push", *PLAIN)
    assert build.exit_codes == {0}, build.said
    assert "No tag moved (--no-push)." in build.finished.stdout
    (image,) = build.images.values()
    assert image.tags == []
    assert image.gates["smoke"]["text"].startswith("cpu passed")
    assert client.tags(f"{project.root}/gpu") == (f"staging-{image.key[:12]}",)


def test_only_chooses_cells_and_leaves_the_others_alone(mini: Mini, tmp_path: Path) -> None:
    project, before = mini[0].copy(tmp_path / "project"), mini[1]
    build = project.build("--only", "os=debian13", "--only", "model=alpha,beta")
    assert build.exit_codes == {0}, build.said
    assert set(build.images) == {"cupy13.6.0-debian13-alpha", "cupy13.6.0-debian13-beta"}
    for tag, image in build.images.items():
        assert image.digest == before.images[tag].digest


def test_shards_are_all_images_and_share_none(mini: Mini, tmp_path: Path) -> None:
    project, before = mini[0].copy(tmp_path / "project"), mini[1]
    shards = [project.build("--shard", f"{part}/4") for part in range(1, 5)]
    assert [shard.finished.code for shard in shards] == [0] * 4
    found = [tag for shard in shards for tag in shard.images]
    assert sorted(found) == sorted(before.images)
    assert project.gpulayers("build", "--shard", "5/4").code == 2


def test_an_interrupt_ends_a_build_soon_and_leaves_nothing_running(
    mini: Mini, docker: Docker, fresh_root: str, tmp_path: Path
) -> None:
    project = mini[0].copy(tmp_path / "project", fresh_root)
    slow = f"check_{fresh_root.rpartition('-')[2]}.py"
    project.change("matrix.toml", "models/beta/check.py", f"models/beta/{slow}")
    project.write(f"models/beta/{slow}", "import time\ntime.sleep(300)\n")
    with started(project, "build", "--only", "model=beta") as build:
        fleet.wait_until(lambda: running(slow), deadline_s=200, why="the step that waits never ran")
        build.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, err = build.communicate(timeout=20)
        assert time.monotonic() - begin < 20
    assert build.returncode == 130, out + err
    fleet.wait_until(lambda: not running(slow), deadline_s=10, why="the step goes on")
    assert f"{project.root}/" not in docker("ps", "--format={{.Image}}").stdout
    report = fleet.built(mini[1].finished, project.folder / fleet.REPORT)
    assert report.report.get("exit_code", 130) == 130
    assert report.statuses <= {"not-tried", "failed"}


@contextlib.contextmanager
def started(project: Project, *words: str) -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-m", "gpulayers", *words, "--registry", project.root]
    env, pipe = {**os.environ, **project.env}, subprocess.PIPE
    with subprocess.Popen(
        argv, cwd=project.folder, env=env, text=True, stdout=pipe, stderr=pipe
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.terminate()


def running(word: str) -> bool:
    """Whether a program with that word in its command line runs on this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"/run/model/{word}".encode() in path.read_bytes():
                return True
    return False


def ref(project: Project, tag: str) -> ImageRef:
    return ImageRef.parse(f"{project.root}/gpu:{tag}")


def digests(build: Built) -> dict[str, str]:
    return {tag: str(image.digest) for tag, image in build.images.items()}


def texts(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}
