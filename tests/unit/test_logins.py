"""Logins of indexes and archives: found where the tools find them, hidden, and gone in the end."""

import tomllib
from pathlib import Path

import pytest

from gpulayers import inputs, secrecy
from gpulayers.inputs.logins import Logins, proxies

SECRET = "pässw/rd-12345"
QUOTED = "p%C3%A4ssw%2Frd-12345"
URL = "https://idx.example/simple"


def complete(url: str, name: str = "", **environment: str) -> str:
    return Logins(environment=environment, keyring=None).complete(url, name)


def test_variables_of_a_named_index_become_its_login() -> None:
    found = complete(URL, "my-own", UV_INDEX_MY_OWN_USERNAME="me", UV_INDEX_MY_OWN_PASSWORD=SECRET)
    assert found == f"https://me:{QUOTED}@idx.example/simple"
    assert secrecy.blank(f"{SECRET} {QUOTED}") == "*** ***"


@pytest.mark.parametrize("url", [URL, "/srv/pypi", "https://[broken", "https://me@idx.example/s"])
def test_an_index_without_a_password_stays_as_it_is(url: str) -> None:
    assert complete(url, "own", UV_INDEX_OTHER_PASSWORD=SECRET) == url


def test_a_token_as_user_name_is_hidden() -> None:
    complete("https://ghp-0123456789abcdef@idx.example/s")
    assert secrecy.blank("ghp-0123456789abcdef") == "***"


def test_a_keyring_is_asked_by_address_then_by_host_and_once() -> None:
    asked: list[tuple[str, str]] = []

    def keyring(service: str, user: str) -> str:
        asked.append((service, user))
        return SECRET if service == "idx.example" else ""

    logins = Logins(environment={}, keyring=keyring)
    for _ in range(2):
        assert logins.complete("https://me@idx.example/simple") == (
            f"https://me:{QUOTED}@idx.example/simple"
        )
    assert asked == [(URL, "me"), ("idx.example", "me")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine with a login in every place."""
    texts = {
        ".netrc": "machine a.example login me password netrc-secret-1\n",
        "etc/apt/auth.conf.d/own.conf": 'machine b.example login me password "apt-secret-1"\n',
        ".config/uv/uv.toml": (
            f'keyring-provider = "subprocess"\n[[index]]\nname = "own"\nurl = "{URL}"\n'
            '[[index]]\nurl = "https://me@ring.example/simple"\n'
        ),
        ".config/pip/pip.conf": "[global]\nindex-url = https://me:pip-secret-1@c.example/s\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_logins_lie_in_a_folder_that_goes_away_and_not_in_the_one_that_stays(home: Path) -> None:
    environment = {"HOME": str(home), "UV_INDEX_OWN_USERNAME": "u", "UV_INDEX_OWN_PASSWORD": SECRET}
    made = inputs.prepare(
        home / "in", {}, environment, root=home, keyring=lambda *_: "ring-secret-1"
    )
    assert made.kept == made.by_hand == home / "in"
    assert made.folder != made.kept
    assert made.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in made.folder.iterdir()} == {0o600}
    assert tomllib.loads(made.uv_config.read_text(encoding="utf-8")) == {
        "index": [
            {"name": "own", "url": f"https://u:{QUOTED}@idx.example/simple"},
            {"url": "https://me:ring-secret-1@ring.example/simple"},
        ]
    }
    whole = "".join(path.read_text(encoding="utf-8") for path in made.folder.iterdir())
    secrets = ("netrc-secret-1", "apt-secret-1", "ring-secret-1", "pip-secret-1", SECRET)
    for secret in secrets[:4]:
        assert secret in whole
    rest = "".join(path.read_text(encoding="utf-8") for path in made.kept.iterdir())
    for secret in (*secrets, QUOTED):
        assert secret not in rest
        assert secrecy.blank(secret) == "***"
    assert "https://idx.example/simple" in rest
    assert (made.kept / "netrc").read_text(encoding="utf-8") == ""


def test_proxies_are_those_of_either_case_and_their_passwords_are_hidden() -> None:
    environment = {"http_proxy": "http://me:proxy-secret@p.example:3128", "NO_PROXY": "localhost"}
    assert proxies(environment) == {
        "HTTP_PROXY": "http://me:proxy-secret@p.example:3128",
        "NO_PROXY": "localhost",
    }
    assert secrecy.blank("proxy-secret") == "***"
