"""Private things, for real: secrets that leave no trace, hostile bases, registries with a login."""

import base64
import gzip
import io
import json
import secrets
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import fleet
import pytest
import zstandard
from conftest import Push
from fleet import Built, Image, Project
from registry_proxy import Proxy

from gpulayers.engine.registry import Registry

pytestmark = pytest.mark.timeout(1500)
VALUE = "s3cr3t-Wört/+&=" + secrets.token_urlsafe(18)
FORMS = (
    VALUE,
    quote(VALUE, safe=""),
    json.dumps(VALUE)[1:-1],
    base64.b64encode(VALUE.encode()).decode().rstrip("=")[:-1],
    base64.b64encode(f"someone:{VALUE}".encode()).decode()[12:-3],
)
PLAIN = ("--only", "os=debian12", "--only", "model=none")
LAYER = """\
schema = 1
kind = "tool"
description = "Something that only we may fetch."
needs = []
secrets = ["private-token"]
"""
# What a careless step does with a secret, but for keeping it.
TEMPLATE = """\
FROM tools AS {{ stage }}
RUN --mount=type=secret,id=private-token,required=true <<'STEP'
set -eu
value=$(cat /run/secrets/private-token)
echo "plain: $value"
echo "as the step fails: $value" >&2
printf %s "someone:$value" | base64 --wrap=0; echo
python3 -c "import urllib.parse, sys; print(urllib.parse.quote(sys.argv[1], safe=''))" "$value"
mkdir -p /out/usr/share/private
echo made >/out/usr/share/private/made
# and then
finish
STEP
"""


def private(folder: Path, root: str, mini: tuple[Project, Built]) -> Project:
    """The small project with a layer that asks for a secret."""
    project = mini[0].copy(folder, root)
    shutil.rmtree(folder / ".gpulayers")
    shutil.copytree(fleet.ROOT / "layers" / "cupy", folder / "layers" / "cupy")
    project.change("layers/cupy/layer.toml", 'needs = ["cuda"]', 'needs = ["cuda", "private"]')
    project.write("layers/private/layer.toml", LAYER)
    project.write("layers/private/Dockerfile.j2", TEMPLATE)
    return project


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file with the secret, outside the project."""
    path = tmp_path / "secret" / "token"
    path.parent.mkdir()
    path.write_text(f"{VALUE}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def traces(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


def traces_in_folder(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and traces(path.read_bytes().decode("utf-8", errors="ignore")):
            yield str(path)


def traces_in_registry(root: str, name: str, client: Registry) -> tuple[list[str], int]:
    """Blobs of a repository with the value in them, and how many were searched."""
    found, seen = [], set()
    for tag in client.tags(f"{root}/{name}"):
        raw = fetch(root, f"{name}/manifests/{tag}")
        document = json.loads(raw)
        found += [f"{name}:{tag}"] if traces(raw.decode()) else []
        for blob in (document["config"], *document["layers"]):
            if blob["digest"] in seen:
                continue
            seen.add(blob["digest"])
            data = unpacked(fetch(root, f"{name}/blobs/{blob['digest']}"))
            wanted = [form.encode() for form in FORMS]
            found += [blob["digest"]] if any(form in data for form in wanted) else []
    return found, len(seen)


def fetch(root: str, path: str) -> bytes:
    host, _, below = root.partition("/")
    accept = "application/vnd.oci.image.manifest.v1+json"
    request = urllib.request.Request(f"http://{host}/v2/{below}/{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as response:
        body: bytes = response.read()
    return body


def unpacked(data: bytes) -> bytes:
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def test_a_secret_leaves_no_trace_when_the_build_passes(
    mini: tuple[Project, Built], fresh_root: str, tmp_path: Path, token: Path, client: Registry
) -> None:
    project = private(tmp_path / "project", fresh_root, mini)
    build = project.build(*PLAIN, "--secret", f"id=private-token,src={token}")
    assert build.exit_codes == {0}, build.said
    assert traces(build.said) == []
    (log,) = (project.folder / ".gpulayers" / "logs").iterdir()
    assert "plain: ***" in log.read_text(encoding="utf-8")
    assert list(traces_in_folder(project.folder)) == []
    for name in ("gpu", "gpu-cache"):
        found, searched = traces_in_registry(project.root, name, client)
        assert searched > 3
        assert found == []
    (image,) = build.images.values()
    assert "private" in [step for step, _ in image.digests()]


def test_the_search_would_find_what_a_step_keeps() -> None:
    """The searcher itself: what it is to find, it finds."""
    for form in (VALUE, quote(VALUE, safe=""), base64.b64encode(f"someone:{VALUE}".encode())):
        text = form.decode() if isinstance(form, bytes) else form
        data = zstandard.ZstdCompressor().compress(f"before {text} after".encode())
        assert traces(unpacked(data).decode()), text


def test_a_secret_leaves_no_trace_when_the_build_fails(
    mini: tuple[Project, Built], fresh_root: str, tmp_path: Path, token: Path
) -> None:
    project = private(tmp_path / "project", fresh_root, mini)
    project.change("layers/private/Dockerfile.j2", "# and then\n", "exit 7\n")
    env = {**project.env, "MY_TOKEN": token.read_text(encoding="utf-8").strip()}
    project = Project(folder=project.folder, root=project.root, env=env)
    build = project.build(*PLAIN, "--secret", "id=private-token,env=MY_TOKEN")
    assert build.exit_codes == {6}, build.said
    (image,) = build.images.values()
    assert (image.failure["step"], image.failure["exit"]) == ("private", 7)
    assert "as the step fails: ***" in build.said
    assert "SECRET_PRIVATE_TOKEN=env=MY_TOKEN" in image.failure["repeat"]
    assert traces(build.said) == []
    assert list(traces_in_folder(project.folder)) == []


def test_a_step_that_keeps_a_secret_is_stopped_before_it_is_a_layer(
    mini: tuple[Project, Built], fresh_root: str, tmp_path: Path, token: Path, client: Registry
) -> None:
    project = private(tmp_path / "project", fresh_root, mini)
    keeps = 'echo "key=$value" >/out/usr/share/private/made\n'
    project.change("layers/private/Dockerfile.j2", "# and then\n", keeps)
    build = project.build(*PLAIN, "--secret", f"id=private-token,src={token}")
    assert build.exit_codes == {6}, build.said
    (image,) = build.images.values()
    said = "finish: the secret private-token stands in /out/usr/share/private/made"
    assert any(said in line for line in image.failure["stderr_tail"])
    assert client.tags(f"{project.root}/gpu") == ()
    assert traces(build.said) == []


def test_a_missing_secret_stops_before_anything_starts(
    mini: tuple[Project, Built], fresh_root: str, tmp_path: Path
) -> None:
    project = private(tmp_path / "project", fresh_root, mini)
    before = (project.folder / fleet.LOCK).read_bytes()
    done = project.gpulayers("build", *PLAIN)
    assert done.code == 3, done.stderr
    assert "layer private asks for the secret private-token: not given" in done.stderr
    assert "--secret id=private-token,env=PRIVATE_TOKEN" in done.stderr
    assert (project.folder / fleet.LOCK).read_bytes() == before
    assert not (project.folder / ".gpulayers" / "render").exists()


# Everything that a base can say to lead an installation elsewhere.
HOSTILE = """\
FROM {base}
COPY sitecustomize.py /srv/evil/
ENV PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_EXTRA_INDEX_URL=http://127.0.0.1:9/more \\
    PIP_CONFIG_FILE=/srv/evil/pip.conf PIP_TARGET=/srv/evil PIP_REQUIRE_VIRTUALENV=1 \\
    UV_INDEX=http://127.0.0.1:9/simple UV_INDEX_URL=http://127.0.0.1:9/simple \\
    UV_DEFAULT_INDEX=http://127.0.0.1:9/simple UV_CONFIG_FILE=/srv/evil/uv.toml UV_OFFLINE=1 \\
    CUDA_VERSION=13.4.0 LD_LIBRARY_PATH=/srv/evil PYTHONPATH=/srv/evil PYTHONHOME=/srv/evil \\
    APT_CONFIG=/srv/evil/apt.conf PATH=/srv/evil:$PATH
SHELL ["/bin/bash", "-o", "nounset", "-c"]
WORKDIR /srv/evil
USER 1234:1234
"""
EVIL = {"sitecustomize.py": 'raise SystemExit("hostile")\n'}


def test_a_base_with_a_hostile_environment_changes_nothing_that_is_installed(
    mini: tuple[Project, Built], push: Push, registry: str, fresh_root: str, tmp_path: Path
) -> None:
    clean = mini[1].images["cupy13.6.0-debian12"]
    project = mini[0].copy(tmp_path / "project", fresh_root)
    lock = fleet.read_lock(project.folder)
    base = next(base for base in lock["base"] if base["os"] == "debian12")
    source = f"{base['repository']}@{base['digest']}"
    path = fresh_root.partition("/")[2]
    digest = push(f"{path}/hostile", HOSTILE.format(base=source), files=EVIL)
    project.change("matrix.toml", source, f"{registry}/{path}/hostile@{digest}")
    locked = project.gpulayers("lock")
    assert locked.code == 0, locked.stderr
    blanks = {base["os"]: base.get("blanks") for base in fleet.read_lock(project.folder)["base"]}
    assert blanks["debian12"] == ["LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"]
    assert blanks["debian12"] == blanks["tools"]
    build = project.build(*PLAIN)
    assert build.exit_codes == {0}, build.said
    (image,) = build.images.values()
    assert own_layers(image) == own_layers(clean)


def own_layers(image: Image) -> list[tuple[str, str]]:
    return [(step, digest) for step, digest in image.digests() if step != "base"]


@dataclass(frozen=True)
class Login:
    """What a registry behind a login wants to hear."""

    user: str = "someone"
    password: str = "pa55-" + secrets.token_hex(8)

    @property
    def basic(self) -> str:
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


@pytest.fixture
def guarded(registry: str) -> Iterator[tuple[Proxy, Login]]:
    """The registry behind a proxy that asks for a login."""
    login = Login()
    with Proxy(registry, login=f"Basic {login.basic}") as proxy:
        yield proxy, login


def behind(
    proxy: Proxy, mini: tuple[Project, Built], folder: Path, root: str, auths: dict[str, object]
) -> Project:
    """The small project below a registry with a login, and a client with these logins."""
    project = mini[0].copy(folder / "project", root)
    shutil.rmtree(project.folder / ".gpulayers")
    config = folder / "docker"
    config.mkdir()
    (config / "config.json").write_text(json.dumps({"auths": auths}), encoding="utf-8")
    for entry in Path(project.env["DOCKER_CONFIG"]).iterdir():
        if entry.name != "config.json":
            (config / entry.name).symlink_to(entry)
    env = {**project.env, "DOCKER_CONFIG": str(config)}
    text = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    old = mini[0].root.partition("/")[0]
    project.write("matrix.toml", text.replace(f"{old}/", f"{proxy.host}/"))
    return Project(folder=project.folder, root=root, env=env)


def test_a_login_of_dockers_client_serves_bases_images_and_caches(
    guarded: tuple[Proxy, Login], mini: tuple[Project, Built], fresh_root: str, tmp_path: Path
) -> None:
    proxy, login = guarded
    root = f"{proxy.host}/{fresh_root.partition('/')[2]}"
    auths: dict[str, object] = {proxy.host: {"auth": login.basic}}
    project = behind(proxy, mini, tmp_path, root, auths)
    build = project.build(*PLAIN)
    assert build.exit_codes == {0}, build.said
    (image,) = build.images.values()
    assert own_layers(image) == own_layers(mini[1].images["cupy13.6.0-debian12"])
    pushed = [line for line in proxy.asked if line.startswith("PUT")]
    assert any("/gpu-cache/manifests/" in line for line in pushed)
    assert any("/gpu/manifests/" in line for line in pushed)
    for secret in (login.password, login.basic):
        assert secret not in build.said
        for path in project.folder.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_without_a_login_the_registry_that_refused_is_named(
    guarded: tuple[Proxy, Login], mini: tuple[Project, Built], fresh_root: str, tmp_path: Path
) -> None:
    proxy, _ = guarded
    root = f"{proxy.host}/{fresh_root.partition('/')[2]}"
    project = behind(proxy, mini, tmp_path, root, {})
    done = project.gpulayers("build", *PLAIN)
    assert done.code == 9, done.stderr
    assert f"{proxy.host} denied access to" in done.stderr
    assert f"docker login {proxy.host}" in done.stderr
