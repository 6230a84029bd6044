"""The reference fleet locks as far as PyPI serves it, and all of it plans and renders.

``GPULAYERS_SLOW=1 python3 tools/devenv run -- python -m pytest tests/engine/test_reference.py``.
Its bases are stand-ins in the private registry: Debian 12 under the names of Ubuntu and NVIDIA, so
what this shows of those systems is names and digests, not packages. Packages for arm64 can only be
asked on arm64, so the lock is for amd64 alone.
"""

import os
import re
import secrets
import sys
from collections.abc import Mapping

import fleet
import pytest
from fleet import Project

from gpulayers.engine import process
from gpulayers.engine.process import Finished

FLEET = fleet.ROOT / "matrix.toml"
LOCK_S = 3600.0
BASE = re.compile(r'\[base\."?(?P<os>[a-z0-9.-]+)"?\]\nsources = \[[^\]]*\]\n')
PLATFORMS = 'platforms = ["linux/amd64", "linux/arm64"]'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(LOCK_S + 600),
    pytest.mark.skipif(not os.environ.get("GPULAYERS_SLOW"), reason="GPULAYERS_SLOW is not set"),
]


@pytest.fixture(scope="module")
def standins(
    engine_env: Mapping[str, str], registry: str, base_tables: str, docker: object, push: object
) -> dict[str, str]:
    """OS of the fleet to a base of that name in the private registry."""
    assert engine_env
    assert docker
    assert callable(push)
    source = re.findall(r'sources = \["([^"]+)"\]', base_tables)[0]
    found = {}
    for os_name in BASE.findall(FLEET.read_text(encoding="utf-8")):
        push(f"mirror/{os_name}:1", f"FROM {source}\nLABEL standin={os_name}\n", files={})
        found[os_name] = f"{registry}/mirror/{os_name}:1"
    return found


@pytest.fixture(scope="module")
def project(
    engine_env: dict[str, str],
    registry: str,
    standins: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    def table(match: re.Match[str]) -> str:
        source = standins[match["os"]]
        return f'[base."{match["os"]}"]\nsources = ["{source}"]\nsuite = "bookworm"\n'

    text = BASE.sub(table, FLEET.read_text(encoding="utf-8"))
    assert PLATFORMS in text
    root = f"{registry}/t-{secrets.token_hex(4)}"
    made = Project(folder=tmp_path_factory.mktemp("reference") / "p", root=root, env=engine_env)
    made.write("matrix.toml", text.replace(PLATFORMS, 'platforms = ["linux/amd64"]'))
    return made


@pytest.fixture(scope="module")
def locked(project: Project) -> Finished:
    argv = [sys.executable, "-m", "gpulayers", "lock", "--registry", project.root]
    return process.run(argv, cwd=project.folder, env=project.env, timeout_s=LOCK_S)


def test_every_kept_cell_locks(locked: Finished, project: Project) -> None:
    assert locked.ok, locked.stderr
    lock = fleet.read_lock(project.folder)
    assert {base["os"] for base in lock["base"]} >= {"ubuntu22.04", "nvidia13.0-ubuntu24.04"}
    versions = {python["python"]: python["version"] for python in lock["python"]}
    assert all(re.fullmatch(rf"{re.escape(p)}\.\d+", v) for p, v in versions.items()), versions


def test_every_kept_cell_plans_and_renders(locked: Finished, project: Project) -> None:
    assert locked.ok, locked.stderr
    rendered = project.gpulayers("render")
    assert rendered.ok, rendered.stderr
    listed = project.gpulayers("list")
    kept = int(re.findall(r"(\d+) kept", listed.stdout)[0])
    files = list((project.folder / ".gpulayers/render/images").glob("*.Dockerfile"))
    assert len(files) == kept


def test_a_cell_that_cannot_be_is_named_with_what_disagrees(
    locked: Finished, project: Project
) -> None:
    assert locked.ok, locked.stderr
    other = project.copy(project.folder.with_name("wrong"))
    text = other.folder.joinpath("matrix.toml").read_text(encoding="utf-8")
    # Facts keep such cells out; an include overrules them.
    for python in ("3.11", "3.12"):
        text += f'\n[[include]]\nos = "debian12"\npython = "{python}"\ncuda = "12.8"\n'
        text += 'framework = "torch==2.7.1"\nmodel = "none"\n'
    other.write("matrix.toml", text)
    refused = other.gpulayers("lock")
    assert refused.code == 3
    assert "cuda==12.8, torch==2.7.1, Python 3.11 3.12, linux/amd64: " in refused.stderr
    assert re.search(r"torch==2.7.1 wants nvidia-\S+-cu12==", refused.stderr)
