"""Builds: recorded progress of a real builder, and what a stand-in for ``docker`` was asked."""

import base64
import json
import os
from pathlib import Path

import pytest

from gpulayers.engine import buildx
from gpulayers.engine.buildx import Buildx, Secret, Vertex
from gpulayers.engine.progress import SILENT, Progress
from gpulayers.errors import ToolError

pytestmark = pytest.mark.usefixtures("own_processes")

RECORDED = Path(__file__).parents[1] / "fixtures" / "buildx"
BASE = "127.0.0.1:5000/acme/base@sha256:0"
# Says what it was asked, then what the test put beside it.
DOCKER = """\
#!/bin/sh
here=$(dirname "$0")
printf '%s\\n' "$@" >"$here/asked"
env >"$here/environment"
pwd >"$here/folder"
for word; do
  case $word in --metadata-file=*) cp "$here/metadata" "${word#*=}" 2>/dev/null ;; esac
done
cat "$here/progress" >&2 2>/dev/null
cat "$here/output" 2>/dev/null
exit "$(cat "$here/code")"
"""


class Docker:
    """A stand-in for the program: keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.say(code=0)
        program = folder / "docker"
        program.write_text(DOCKER, encoding="utf-8")
        program.chmod(0o755)

    def say(
        self, *, code: int, progress: str = "", output: str = "", metadata: object = None
    ) -> None:
        (self.folder / "code").write_text(str(code))
        (self.folder / "progress").write_text(progress, encoding="utf-8")
        (self.folder / "output").write_text(output, encoding="utf-8")
        if metadata is not None:
            (self.folder / "metadata").write_text(json.dumps(metadata), encoding="utf-8")

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text(encoding="utf-8").splitlines()

    @property
    def environment(self) -> list[str]:
        return (self.folder / "environment").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Docker(folder)


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def progress_of(text: str) -> Progress:
    progress = Progress()
    for line in text.splitlines():
        progress.take(line)
    return progress


def event(digest: str = "d", name: str = "[a 1/1] RUN x", **more: object) -> str:
    return json.dumps({"vertexes": [{"digest": digest, "name": name, **more}]})


def log(data: bytes, digest: str = "d") -> str:
    return json.dumps({"logs": [{"vertex": digest, "data": base64.b64encode(data).decode()}]})


def test_a_recorded_failure_is_told_by_step_status_and_last_lines() -> None:
    failure = progress_of(recorded("failed.rawjson")).failure()
    assert failure.step == "[bad-5e6f7a8b 1/2] RUN <<'STEP' (set -eu...)"
    assert failure.exit == 3
    assert failure.lines[:3] == ("looks like exit code: 7 here", "half a line", "MY_TOKEN=***")
    assert failure.lines[-1].endswith("did not complete successfully: exit code: 3")


def test_in_a_recorded_failure_neither_the_cancelled_sibling_nor_the_cache_is_to_blame() -> None:
    progress = progress_of(recorded("failed.rawjson"))
    errors = {vertex.name: vertex.error for vertex in progress.vertices.values() if vertex.error}
    assert len(errors) == 3
    (cache,) = [name for name in errors if name.startswith("importing cache manifest")]
    (sibling,) = [name for name in errors if name.startswith("[good-1a2b3c4d")]
    assert errors[cache].endswith("not found")
    assert errors[sibling].endswith("context canceled")


def test_a_recorded_second_build_is_cached_but_for_what_is_always_asked() -> None:
    progress = progress_of(recorded("cached.rawjson"))
    steps = {v.name: v.cached for v in progress.vertices.values() if " RUN " in v.name}
    assert len(steps) == 3
    assert all(steps.values())
    assert all(v.completed for v in progress.vertices.values() if v.started)


def test_a_listener_hears_of_each_change_once() -> None:
    seen: list[Vertex] = []
    progress = Progress(on_vertex=seen.append)
    for line in (event(), event(), event(started="t"), event(started="t", completed="t")):
        progress.take(line)
    assert [(v.started, v.completed) for v in seen] == [(False,) * 2, (True, False), (True, True)]


def test_once_cached_stays_cached() -> None:
    progress = progress_of("\n".join([event(cached=True), event(completed="t")]))
    assert progress.vertices["d"].cached


def test_a_failure_without_a_status_did_not_end_by_itself() -> None:
    failure = progress_of(event(error="failed to push: denied")).failure()
    assert (failure.exit, failure.lines) == (0, ("failed to push: denied",))


@pytest.mark.parametrize(
    "name",
    [
        "importing cache manifest from registry.example/x",
        "exporting cache to registry",
        "[one] importing cache manifest from registry.example/x",
    ],
)
def test_trouble_with_a_cache_is_never_the_failure(name: str) -> None:
    lines = [event("c", name, error="not found"), event("d", error="exit code: 9")]
    assert progress_of("\n".join(lines)).failure().exit == 9
    assert progress_of("\n".join([lines[0], "ERROR: other"])).failure().lines == ("ERROR: other",)


def test_when_all_were_cancelled_the_plain_text_tells_why() -> None:
    text = "\n".join(
        [event(error="x: context canceled: context canceled"), "ERROR: the builder went"]
    )
    failure = progress_of(text).failure()
    assert (failure.step, failure.lines) == ("", ("ERROR: the builder went",))


def test_a_step_that_only_speaks_of_canceled_is_to_blame() -> None:
    error = 'process "echo context canceled" did not complete successfully: exit code: 4'
    assert progress_of(event(error=error)).failure().exit == 4


@pytest.mark.parametrize("line", ["ERROR: x", "3", "null", '"x"', '["x"]', "{"])
def test_what_is_no_event_is_kept_as_plain_text(line: str) -> None:
    assert progress_of(line).failure().lines == (line,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "{}",
        '{"vertexes": 3, "logs": {}}',
        '{"vertexes": [3], "logs": [null]}',
        '{"logs": [{"vertex": "d", "data": "?"}]}',
        '{"logs": [{"data": 3}]}',
    ],
)
def test_events_of_another_shape_say_nothing(line: str) -> None:
    progress = progress_of(line)
    assert (progress.vertices, progress.failure().lines) == ({}, (SILENT,))


def test_a_log_is_joined_before_it_is_cut_into_lines_and_blanked() -> None:
    pieces = [b"one\nHF_TO", b"KEN=ab", b"c\nnext \xc3", b"\xa4\n\n"]
    text = "\n".join([*map(log, pieces), event(error="exit code: 1")])
    lines = progress_of(text).failure().lines
    assert lines == ("one", "HF_TOKEN=***", "next ä", "exit code: 1")


def test_of_a_long_log_the_end_is_kept() -> None:
    text = "\n".join([log(b"x" * 999 + b"\n") for _ in range(200)] + [event(error="exit code: 1")])
    assert len(progress_of(text).failure().lines) == 40
    assert len(progress_of(text).logs["d"]) <= 64_000


def test_a_long_error_is_cut_from_the_front() -> None:
    error = f'process "{"echo x " * 300}" did not complete successfully: exit code: 5'
    failure = progress_of(event(error=error)).failure()
    assert failure.exit == 5
    assert failure.lines[-1].startswith("… ")
    assert len(failure.lines[-1]) < 310


def test_a_build_is_asked_with_the_words_of_the_command_line(
    docker: Docker, tmp_path: Path
) -> None:
    docker.say(code=0, metadata={"containerimage.digest": "sha256:1"})
    outcome = Buildx(builder="far", network="host").build(
        tmp_path,
        output="type=local,dest=x",
        target="image",
        contexts={"base": f"docker-image://{BASE}"},
        arguments={"HF_TOKEN": "abc def"},
        secrets=[Secret(id="ca", source=Path("/etc/ca.crt"))],
        platform="linux/amd64",
        no_cache=True,
    )
    assert docker.asked[:3] == ["buildx", "build", "--builder=far"]
    assert docker.asked[-1] == str(tmp_path)
    for word in (
        "--output=type=local,dest=x",
        "--network=host",
        "--provenance=false",
        "--sbom=false",
        "--target=image",
        "--platform=linux/amd64",
        "--no-cache",
        f"--build-context=base=docker-image://{BASE}",
        "--build-arg=HF_TOKEN=abc def",
        "--secret=id=ca,src=/etc/ca.crt",
        "--progress=rawjson",
    ):
        assert word in docker.asked
    assert outcome.ok
    assert outcome.failure is None
    assert outcome.digest == "sha256:1"
    assert "--build-arg=HF_TOKEN=***" in outcome.argv
    assert "BUILDX_METADATA_PROVENANCE=disabled" in docker.environment


def test_a_bake_reads_its_digest_by_target_and_runs_beside_its_file(
    docker: Docker, tmp_path: Path
) -> None:
    docker.say(
        code=0,
        progress="WARN: old syntax\n",
        metadata={"buildx.build.warnings": [], "one": {"containerimage.digest": "sha256:2"}},
    )
    file = tmp_path / "docker-bake.json"
    outcome = Buildx(builder="", network="default").bake(
        file, "one", settings=["output=x"], variables={"REGISTRY": "r.example/x"}
    )
    assert docker.asked[:3] == ["buildx", "bake", f"--file={file}"]
    assert docker.asked[-1] == "one"
    assert {"--set=one.output=x", "--provenance=false", "--sbom=false"} <= set(docker.asked)
    assert {"NETWORK=default", "REGISTRY=r.example/x"} <= set(docker.environment)
    assert (docker.folder / "folder").read_text().strip() == str(tmp_path.resolve())
    assert (outcome.digest, outcome.warnings) == ("sha256:2", ("WARN: old syntax",))


def test_a_failed_call_has_no_digest_and_says_why(docker: Docker, tmp_path: Path) -> None:
    docker.say(code=1, progress=recorded("failed.rawjson"), metadata={})
    seen: list[Vertex] = []
    outcome = Buildx(builder="", network="host").bake(
        tmp_path / "docker-bake.json", "one", on_vertex=seen.append
    )
    assert not outcome.ok
    assert outcome.digest == ""
    assert outcome.failure is not None
    assert outcome.failure.exit == 3
    assert len(outcome.vertices) > 5
    assert len(seen) > len(outcome.vertices)


def test_a_call_without_metadata_made_no_image(docker: Docker, tmp_path: Path) -> None:
    assert Buildx(builder="", network="host").build(tmp_path, output="x").digest == ""
    docker.say(code=0, metadata={"one": {"image.name": "x"}})
    assert Buildx(builder="", network="host").build(tmp_path, output="x").digest == ""


def test_a_time_out_names_what_was_under_way(docker: Docker, tmp_path: Path) -> None:
    lines = f"{event(started='t')}\n{log(b'at 40 percent')}\n"
    script = f"#!/bin/sh\ncat <<'X' >&2\n{lines}X\nexec sleep 30\n"
    (docker.folder / "docker").write_text(script)
    outcome = Buildx(builder="", network="host").build(tmp_path, output="x", timeout_s=0.5)
    assert outcome.failure is not None
    assert outcome.failure.step == "(time-out)"
    assert outcome.failure.lines == ("[a 1/1] RUN x: at 40 percent",)


@pytest.mark.parametrize(("names", "network"), [("none\nhost\nbridge\n", "default"), ("", "host")])
def test_an_engine_without_a_bridge_builds_on_the_hosts_network(
    docker: Docker, names: str, network: str
) -> None:
    docker.say(code=0, output=names)
    assert buildx.find("far") == Buildx(builder="far", network=network)


def test_an_engine_that_does_not_answer_is_told(docker: Docker) -> None:
    docker.say(code=1, progress="Cannot connect to the Docker daemon\n")
    with pytest.raises(ToolError, match="does not answer: Cannot connect to the Docker daemon"):
        buildx.find()


def test_the_clients_own_builder_serves_where_images_need_not_be_unpacked(docker: Docker) -> None:
    docker.say(code=0, output="bridge\nio.containerd.snapshotter.v1\nDriver: docker\n")
    assert buildx.find() == Buildx(builder="", network="default")


def test_without_the_containerd_store_a_builder_of_our_own_serves(docker: Docker) -> None:
    docker.say(code=0, output="bridge\nDriver: docker\n")
    assert buildx.find() == Buildx(builder="gpulayers", network="default")
    assert docker.asked == ["buildx", "inspect", "gpulayers"]


def test_another_builder_of_the_client_is_taken_as_it_is(docker: Docker) -> None:
    docker.say(code=0, output="Driver:   kubernetes\n")
    assert buildx.find() == Buildx(builder="", network="host")
