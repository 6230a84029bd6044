"""Builds through ``docker buildx``: one call, its progress as events, its digest or its failure."""

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.engine import process
from gpulayers.engine.process import Finished
from gpulayers.engine.progress import (
    SILENT,
    TAIL_LINES,
    TIMED_OUT,
    Events,
    OnTransfer,
    OnVertex,
    Progress,
    StepFailure,
    Transfer,
    Vertex,
)
from gpulayers.errors import ToolError
from gpulayers.inputs import PROXIES

__all__ = [
    "Buildx",
    "OnTransfer",
    "OnVertex",
    "Outcome",
    "Secret",
    "StepFailure",
    "Transfer",
    "Vertex",
    "find",
]

# One level for images and cache, or the same layer would be stored twice.
COMPRESSION = "compression=zstd,compression-level=3,oci-mediatypes=true"
IMAGE_OUTPUT = f"type=image,push=true,unpack=false,store=false,{COMPRESSION}"
OWN_BUILDER = "gpulayers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A file of the machine that one build step may read and that never reaches a layer."""

    id: str
    source: Path

    def format(self) -> str:
        """As ``--secret`` and bake take it."""
        return f"id={self.id},src={self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a build call came to.

    Shape: ``digest`` is "" on failure and for builds that make no image; ``vertices`` in the order
    in which they were first seen; ``warnings`` are what buildx said without failing.
    """

    ok: bool
    digest: str
    vertices: tuple[Vertex, ...]
    failure: StepFailure | None
    argv: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildx:
    """The builder to ask: its name ("" is the client's own choice) and the network of its steps."""

    builder: str
    network: str

    def build(  # noqa: PLR0913 - these are the words of the command line
        self,
        context: Path,
        *,
        output: str,
        target: str = "",
        contexts: Mapping[str, str] | None = None,
        arguments: Mapping[str, str] | None = None,
        secrets: Sequence[Secret] = (),
        platform: str = "",
        no_cache: bool = False,
        timeout_s: float | None = None,
        on_vertex: OnVertex | None = None,
    ) -> Outcome:
        """Build the Dockerfile of a folder; the words are those of ``docker buildx build``."""
        argv = ["docker", "buildx", "build", *self._builder(), f"--output={output}"]
        argv += [f"--network={self.network}", "--provenance=false", "--sbom=false"]
        argv += [f"--target={target}"] if target else []
        argv += [f"--platform={platform}"] if platform else []
        argv += ["--no-cache"] if no_cache else []
        argv += [f"--build-context={name}={value}" for name, value in (contexts or {}).items()]
        argv += [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
        argv += [f"--secret={secret.format()}" for secret in secrets]
        # Without values, which the client takes from its environment: they may hold a login.
        argv += [f"--build-arg={name}" for name in os.environ if name.upper() in PROXIES]
        return _call(argv, last=[str(context)], timeout_s=timeout_s, on_vertex=on_vertex)

    def bake(  # noqa: PLR0913 - these are the words of the command line
        self,
        file: Path,
        target: str,
        *,
        settings: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        on_vertex: OnVertex | None = None,
        on_transfer: OnTransfer | None = None,
        events: Events | None = None,
    ) -> Outcome:
        """Build one target of a bake file; ``settings`` are values of ``--set``."""
        argv = ["docker", "buildx", "bake", *self._builder(), f"--file={file}"]
        argv += ["--provenance=false", "--sbom=false", "--allow=fs.read=*", "--allow=network.host"]
        argv += [f"--set={target}.{setting}" for setting in settings]
        environment = {"NETWORK": self.network, **(variables or {})}
        return _call(
            argv,
            last=[target],
            timeout_s=timeout_s,
            on_vertex=on_vertex,
            on_transfer=on_transfer,
            events=events,
            env=environment,
            cwd=file.parent,
        )

    def copy(self, source: str, target: str, *, timeout_s: float | None = None) -> Finished:
        """Copy a manifest with its blobs to another repository, as it is: the digest stays."""
        argv = ["docker", "buildx", "imagetools", "create", *self._builder()]
        # A manifest alone would else get an index of its own.
        argv += ["--prefer-index=false", "--progress=plain", f"--tag={target}", source]
        return process.run(argv, timeout_s=timeout_s)

    def _builder(self) -> list[str]:
        return [f"--builder={self.builder}"] if self.builder else []


def _call(  # noqa: PLR0913 - what a call has in common
    argv: Sequence[str],
    *,
    last: Sequence[str],
    timeout_s: float | None,
    on_vertex: OnVertex | None,
    on_transfer: OnTransfer | None = None,
    events: Events | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Outcome:
    progress = Progress(on_vertex=on_vertex, events=events, on_transfer=on_transfer)
    with tempfile.TemporaryDirectory(prefix="gpulayers-") as folder:
        metadata = Path(folder) / "metadata.json"
        full = [*argv, "--progress=rawjson", f"--metadata-file={metadata}", *last]
        # Bake's definitions and provenance are not asked for; neither may read our secrets' values.
        quiet = {"BUILDX_METADATA_PROVENANCE": "disabled", **(env or {})}
        done = process.run(full, env=quiet, cwd=cwd, timeout_s=timeout_s, on_stderr=progress.take)
        digest = _read_digest(metadata) if done.ok else ""
    return Outcome(
        ok=done.ok,
        digest=digest,
        vertices=tuple(progress.vertices.values()),
        failure=None if done.ok else _failure(progress, timed_out=done.timed_out),
        argv=tuple(process.redact_word(word) for word in [*argv, *last]),
        warnings=tuple(line for line in progress.plain if "WARN" in line.upper()),
        seconds=done.seconds,
    )


def _failure(progress: Progress, *, timed_out: bool) -> StepFailure:
    if timed_out:
        lines = (*progress.plain[-TAIL_LINES:], *progress.unfinished()) or (SILENT,)
        return StepFailure(step=TIMED_OUT, exit=0, lines=lines[-TAIL_LINES:])
    return progress.failure()


def _read_digest(metadata: Path) -> str:
    if not metadata.is_file():
        return ""
    data: object = json.loads(metadata.read_text(encoding="utf-8"))
    tables: list[object] = [data, *(data.values() if isinstance(data, dict) else ())]
    for table in tables:
        if isinstance(table, dict) and isinstance(table.get("containerimage.digest"), str):
            return str(table["containerimage.digest"])
    return ""


def find(builder: str = "") -> Buildx:
    """The builder to use: the one named, the client's own where it can do what we need, or ours.

    The docker driver needs the containerd image store to export what it built without unpacking
    it; where the engine lacks that, a builder of the docker-container driver is made and used.

    Raises: ToolError: the engine or buildx does not answer.
    """
    network = _network()
    if builder or _has_containerd_store() or _driver() != "docker":
        return Buildx(builder=builder, network=network)
    if not process.run(["docker", "buildx", "inspect", OWN_BUILDER], timeout_s=60).ok:
        argv = ["docker", "buildx", "create", f"--name={OWN_BUILDER}", "--driver=docker-container"]
        argv += ["--driver-opt=network=host"]
        argv += ["--buildkitd-flags=--allow-insecure-entitlement=network.host"]
        made = process.run(argv, timeout_s=300)
        if not made.ok:
            msg = (
                "the engine has no containerd image store, and a docker-container builder could "
                f"not be made: {' '.join(made.tail(2))}"
            )
            raise ToolError(msg, hint="make a builder with buildx and name it with --builder")
    return Buildx(builder=OWN_BUILDER, network=network)


def _network() -> str:
    """The host's network where the engine has no bridge of its own, else the default one."""
    argv = ["docker", "network", "ls", "--filter=driver=bridge", "--format={{.Name}}"]
    done = process.run(argv, timeout_s=30)
    if not done.ok:
        msg = f"the Docker engine does not answer: {' '.join(done.tail(1))}"
        raise ToolError(msg, hint="start Docker; `gpulayers doctor` says what this machine has")
    return "default" if "bridge" in done.stdout.split() else "host"


def _has_containerd_store() -> bool:
    done = process.run(["docker", "info", "--format={{json .DriverStatus}}"], timeout_s=30)
    return "io.containerd.snapshotter" in done.stdout


def _driver() -> str:
    done = process.run(["docker", "buildx", "inspect"], timeout_s=60)
    if not done.ok:
        msg = f"docker buildx does not answer: {' '.join(done.tail(1))}"
        raise ToolError(msg, hint="install the buildx plugin 0.13 or newer (docker-buildx)")
    found = re.search(r"^Driver:\s*(\S+)", done.stdout, re.MULTILINE)
    return found[1] if found is not None else ""
