"""A real engine and registry for the tests of this folder, or the reason why there is none.

``python3 tools/devenv run -- pytest tests/engine`` gives the private ones. In CI, and with
``--engine``, a missing engine is a failure: a suite that skipped everything is green as well.
"""

import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import empty_engine as second
import fleet
import pytest
import standin_driver
from fleet import Built, Project
from missing import missing

from gpulayers.engine import process
from gpulayers.engine.process import Finished
from gpulayers.engine.registry import Registry

Docker: TypeAlias = Callable[..., Finished]
Push: TypeAlias = Callable[..., str]
HERE = Path(__file__).parent
# Started in the background of a shell we inherit that Ctrl-C is ignored; so would our children.
signal.signal(signal.SIGINT, signal.default_int_handler)
TIMEOUT_S = 300.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", action="store_true", help="fail where there is no engine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine_env(request: pytest.FixtureRequest) -> dict[str, str]:
    """The variables that lead to the engine: registry address, engine, client settings."""
    names = ("GPULAYERS_REGISTRY", "DOCKER_HOST", "DOCKER_CONFIG")
    found = {name: os.environ[name] for name in names if os.environ.get(name)}
    if "GPULAYERS_REGISTRY" in found:
        return found
    reason = "GPULAYERS_REGISTRY is not set: run it through python3 tools/devenv run --"
    return missing(request.config, reason)


@pytest.fixture(scope="session")
def registry(engine_env: dict[str, str]) -> str:
    """Host and port of the registry to push to."""
    return engine_env["GPULAYERS_REGISTRY"]


@pytest.fixture(scope="session")
def docker(engine_env: dict[str, str]) -> Docker:
    """Runs the docker command line and fails the test with its words when it does not end well."""

    def run(*arguments: str, check: bool = True, cwd: Path | None = None) -> Finished:
        finished = process.run(["docker", *arguments], env=engine_env, cwd=cwd, timeout_s=TIMEOUT_S)
        if check and not finished.ok:
            pytest.fail(f"docker {' '.join(arguments)}: {finished.tail(20)}")
        return finished

    return run


@pytest.fixture(scope="session")
def push(docker: Docker, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Push:
    """Builds a Dockerfile with files beside it, pushes it, and returns its manifest's digest.

    Shape: ``push(name, dockerfile, files={"path": "text"}, platform="linux/amd64")``.
    """

    def make(
        name: str,
        dockerfile: str,
        *,
        files: Mapping[str, str | bytes],
        platform: str = "linux/amd64",
    ) -> str:
        context = tmp_path_factory.mktemp("context")
        for path, content in {**files, "Dockerfile": dockerfile}.items():
            place = context / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        metadata = context.with_name(f"{context.name}.json")
        output = f"type=image,name={registry}/{name},push=true,oci-mediatypes=true"
        docker(
            *("buildx", "build", "--provenance=false", "--platform", platform),
            *("--metadata-file", str(metadata), "--output", output, str(context)),
        )
        digest: str = json.loads(metadata.read_text(encoding="utf-8"))["containerimage.digest"]
        return digest

    return make


@pytest.fixture(scope="session")
def demo_project(engine_env: dict[str, str], registry: str) -> Project:
    """The demo of this checkout as a project, built to where `make demo` builds."""
    return Project(folder=fleet.DEMO, root=f"{registry}/acme", env=engine_env)


@pytest.fixture(scope="session")
def demo(demo_project: Project) -> Built:
    """The demo, run once: in a fresh clone this is the cold one."""
    return fleet.run_demo(demo_project)


@pytest.fixture(scope="session")
def client() -> Registry:
    """A registry client for looking at what is there."""
    return Registry()


@pytest.fixture(scope="session")
def base_tables(request: pytest.FixtureRequest, demo_project: Project, client: Registry) -> str:
    """The demo's bases for another matrix; the demo is run where they are not there yet."""
    if not fleet.has_bases(demo_project, client):
        demo: Built = request.getfixturevalue("demo")
        assert fleet.has_bases(demo_project, client), demo.said
    lock = fleet.read_lock(demo_project.folder)
    return fleet.base_tables(lock, demo_project.root)


@pytest.fixture
def fresh_root(registry: str) -> str:
    """A path of the registry where nothing was ever pushed to."""
    return f"{registry}/t-{secrets.token_hex(4)}"


@pytest.fixture(scope="session")
def mini(
    engine_env: dict[str, str],
    registry: str,
    base_tables: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Project, Built]:
    """The small project, locked and built once; tests that change anything take a copy."""
    root = f"{registry}/t-{secrets.token_hex(4)}"
    folder = tmp_path_factory.mktemp("mini") / "project"
    project = fleet.make(folder, root, base_tables, engine_env)
    return project, project.build()


@pytest.fixture
def standin(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[standin_driver.StandIn]:
    """A driver that answers and computes nothing, for containers of the private engine."""
    with standin_driver.built(tmp_path, request.config) as made:
        yield made


@pytest.fixture
def empty_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a Docker engine of its own, with no image and no network."""
    with second.started(request.config) as host:
        yield host
