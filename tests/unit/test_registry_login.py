"""Logins: what Docker's config.json says, and the talk with token servers and helpers."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from registry_fakes import MANIFEST
from registry_server import Asked, Reply, Server

from gpulayers.engine.registry import Patience, Registry, RegistryError, Trouble, digest_of
from gpulayers.engine.registry.login import Stored, parse_stored
from gpulayers.refs import ImageRef

pytestmark = pytest.mark.usefixtures("loopback", "folder")
USER, PASSWORD = "robot", "pass:word"  # a colon may stand in a password
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
HUB = "https://index.docker.io/v1/"


def stored(config: Mapping[str, object], registry: str) -> Stored:
    return parse_stored(json.dumps(config), registry=registry, where="config.json")


def test_a_login_is_found_under_the_host_or_the_address_of_older_clients() -> None:
    for key in ("r.lan:5000", "https://r.lan:5000", "https://r.lan:5000/v2/"):
        assert stored({"auths": {key: {"auth": BASIC}}}, "r.lan:5000").basic == BASIC


def test_docker_hub_has_a_key_of_its_own() -> None:
    found = stored({"auths": {HUB: {"auth": BASIC}}, "credHelpers": {"r.lan": "x"}}, "docker.io")
    assert (found.server, found.basic, found.helper) == (HUB, BASIC, "")


def test_a_helper_of_the_registry_goes_before_the_store_of_all() -> None:
    config = {"credsStore": "all", "credHelpers": {"r.lan": "own"}}
    assert stored(config, "r.lan").helper == "own"
    assert stored(config, "other.lan").helper == "all"


@pytest.mark.parametrize("config", [{}, {"auths": None}, {"auths": {"r.lan": {}}}, {"auths": [1]}])
def test_no_login_is_no_error(config: dict[str, object]) -> None:
    found = stored(config, "r.lan")
    assert (found.basic, found.identity_token, found.helper) == ("", "", "")


def test_a_broken_file_is_named_and_not_quoted() -> None:
    with pytest.raises(RegistryError, match="here: wanted JSON, found something else at line 2"):
        parse_stored('{"auths":\n s3cret', registry="r.lan", where="here")


def test_a_login_is_not_in_its_own_repr() -> None:
    assert BASIC not in repr(stored({"auths": {"r.lan": {"auth": BASIC}}}, "r.lan"))


class Gate:
    """A registry with a token server on the same port; tokens are counted and may run out."""

    def __init__(self, *, login: str = f"Basic {BASIC}", basic: bool = False) -> None:
        self.login = login
        self.basic = basic
        self.token = 0
        self.valid_from = 1
        self.token_status = 200
        self.host = ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.path.startswith("/token"):
            return self.give(asked)
        wanted = {self.login} if self.basic else {f"Bearer t{self.token}"}
        if asked.login in wanted and (self.basic or self.token >= self.valid_from):
            headers = {"Docker-Content-Digest": digest_of(MANIFEST)}
            return Reply(status=200 if asked.method != "PUT" else 201, headers=headers)
        repository = "/".join(asked.path.split("/")[2:4])
        right = "pull,push" if asked.method == "PUT" else "pull"
        bearer = (
            f'Bearer realm="http://{self.host}/token",service="reg",'
            f'scope="repository:{repository}:{right}"'
        )
        challenge = 'Basic realm="reg"' if self.basic else bearer
        return Reply(status=401, headers={"WWW-Authenticate": challenge})

    def give(self, asked: Asked) -> Reply:
        if self.token_status != 200:
            return Reply(status=self.token_status)
        form = parse_qs(asked.body.decode())
        if asked.login != self.login and form.get("refresh_token") != [self.login]:
            return Reply(status=401)
        self.token += 1
        name = "access_token" if asked.method == "POST" else "token"
        return Reply(status=200, body=json.dumps({name: f"t{self.token}"}).encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def write_config(folder: Path, **config: object) -> None:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def client() -> Registry:
    return Registry(patience=Patience(tries=2, sleep=lambda _: None))


def serve(gate: Gate) -> Server:
    server = Server(gate)
    gate.host = server.host
    return server


def test_a_bearer_challenge_is_answered_with_the_login_of_docker_config(folder: Path) -> None:
    with serve(Gate()) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": BASIC}})
        ref = ImageRef.parse(f"{server.host}/team/app:one")
        assert registry.resolve(ref) == digest_of(MANIFEST)
        assert registry.resolve(ref) == digest_of(MANIFEST)
        asked = urlsplit(server.asked[1].path)
        assert parse_qs(asked.query) == {"service": ["reg"], "scope": ["repository:team/app:pull"]}
        # The second look-up used the token that the first one got.
        assert [each.login[:6] for each in server.asked] == ["", "Basic ", "Bearer", "Bearer"]


def test_writing_asks_for_a_token_that_allows_it(folder: Path) -> None:
    with serve(Gate()) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": BASIC}})
        ref = ImageRef.parse(f"{server.host}/team/app:one")
        registry.resolve(ref)
        registry.put_manifest(ref, MANIFEST, "x")
        scopes = [parse_qs(urlsplit(each.path).query).get("scope") for each in server.asked]
        assert ["repository:team/app:pull,push"] in scopes
        assert server.asked[-1].body == MANIFEST


def test_a_token_that_ran_out_is_fetched_anew(folder: Path) -> None:
    gate = Gate()
    with serve(gate) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": BASIC}})
        ref = ImageRef.parse(f"{server.host}/team/app:one")
        registry.resolve(ref)
        gate.valid_from = 2
        assert registry.resolve(ref) == digest_of(MANIFEST)
        assert gate.token == 2


def test_many_threads_share_one_token(folder: Path) -> None:
    gate = Gate()
    with serve(gate) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": BASIC}})
        ref = ImageRef.parse(f"{server.host}/team/app:one")
        found = registry.resolve_many([ref.with_tag(f"t{number}") for number in range(20)])
        assert set(found.values()) == {digest_of(MANIFEST)}
        assert gate.token == 1


def test_without_a_login_a_token_is_asked_for_nobody() -> None:
    with serve(Gate(login="")) as server, client() as registry:
        ref = ImageRef.parse(f"{server.host}/team/app:one")
        assert registry.resolve(ref) == digest_of(MANIFEST)


def test_a_basic_challenge_is_answered_too(folder: Path) -> None:
    with serve(Gate(basic=True)) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": BASIC}})
        assert registry.ping(server.host)
        assert len(server.asked) == 2


def test_an_identity_token_is_exchanged(folder: Path) -> None:
    with serve(Gate(login="identity")) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": "", "identitytoken": "identity"}})
        assert registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
        assert server.asked[1].method == "POST"


def test_a_wrong_login_is_denied_without_a_storm_and_without_being_printed(folder: Path) -> None:
    wrong = base64.b64encode(b"robot:wrong-secret").decode()
    with serve(Gate()) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": wrong}})
        with pytest.raises(RegistryError, match="denied access to team/app") as caught:
            registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
        assert len(server.asked) == 2
    assert caught.value.trouble is Trouble.AUTH_DENIED
    assert f"docker login {server.host}" in caught.value.hint
    assert not [each for each in (wrong, "wrong-secret") if each in repr(caught.value)]


@pytest.mark.parametrize(
    ("status", "trouble"), [(503, Trouble.UNREACHABLE), (429, Trouble.RATE_LIMIT)]
)
def test_a_token_server_that_is_overloaded_denied_nobody(status: int, trouble: Trouble) -> None:
    gate = Gate()
    gate.token_status = status
    with (
        serve(gate) as server,
        client() as registry,
        pytest.raises(RegistryError, match=f"asked 2 times: .*HTTP {status}") as caught,
    ):
        registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
    assert caught.value.trouble is trouble


def helper(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int = 0) -> Path:
    program = folder / "docker-credential-lab"
    program.write_text(
        f"#!/bin/sh\ncat > {folder}/asked\ncat <<'E'\n{answer}\nE\nexit {code}\n", encoding="utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "asked"


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("how", ["credHelpers", "credsStore"])
def test_a_helper_is_asked_for_the_registry(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    said = json.dumps({"ServerURL": "x", "Username": USER, "Secret": PASSWORD})
    asked = helper(folder, monkeypatch, said)
    with serve(Gate()) as server, client() as registry:
        write_config(folder, **{how: {server.host: "lab"} if how == "credHelpers" else "lab"})
        assert registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
        assert asked.read_text(encoding="utf-8") == server.host


@pytest.mark.usefixtures("own_processes")
def test_a_helper_that_knows_no_login_leaves_us_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    helper(folder, monkeypatch, "credentials not found in native keychain", code=1)
    with serve(Gate(login="")) as server, client() as registry:
        write_config(folder, credsStore="lab")
        assert registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("own_processes")
def test_a_helper_that_talks_nonsense_is_named_and_not_quoted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(folder, monkeypatch, "{s3cret")
    with serve(Gate()) as server, client() as registry:
        write_config(folder, credsStore="lab")
        with pytest.raises(RegistryError, match="docker-credential-lab answered") as caught:
            registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
    assert "s3cret" not in str(caught.value)


def test_a_helper_that_is_not_installed_is_named(folder: Path) -> None:
    with serve(Gate()) as server, client() as registry:
        write_config(folder, credsStore="nowhere")
        with pytest.raises(RegistryError, match="docker-credential-nowhere, which is not on PATH"):
            registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))


def test_an_auth_that_is_no_base64_is_named_and_not_quoted(folder: Path) -> None:
    with serve(Gate()) as server, client() as registry:
        write_config(folder, auths={server.host: {"auth": "s3cret!"}})
        with pytest.raises(RegistryError, match="is not USER:PASSWORD in base64") as caught:
            registry.resolve(ImageRef.parse(f"{server.host}/team/app:one"))
    assert "s3cret" not in str(caught.value)


def test_a_challenge_of_the_host_that_a_redirect_led_to_gets_no_login(folder: Path) -> None:
    with serve(Gate()) as elsewhere:
        aside = Reply(status=307, headers={"Location": f"http://{elsewhere.host}/v2/a/b/blobs/x"})
        with Server(lambda _: aside) as server, client() as registry:
            write_config(folder, auths={server.host: {"auth": BASIC}})
            with pytest.raises(RegistryError):
                registry.blob(ImageRef.parse(f"{server.host}/team/app"), digest_of(b"x"))
        assert [each.login for each in elsewhere.asked] == [""]
