"""Docker's own logins: what config.json says about one registry."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers.engine.registry.hosts import DOCKER_HUB
from gpulayers.engine.registry.refusal import RegistryError, Trouble

# Docker keeps the login of Docker Hub under this address, and asks helpers for it by it.
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What config.json says about one registry.

    Shape: ``basic`` is ``USER:PASSWORD`` in base64; ``identity_token`` a token to be exchanged;
    ``helper`` the suffix of a ``docker-credential-…`` program that is asked for ``server``; each
    may be empty.
    """

    server: str
    basic: str
    identity_token: str
    helper: str

    def __repr__(self) -> str:
        """The server and where its login comes from, never the login."""
        return f"Stored(server={self.server!r}, helper={self.helper!r}, …)"


def config_path(environ: Mapping[str, str]) -> Path:
    """Where Docker's client keeps its configuration: under ``DOCKER_CONFIG``, else at home."""
    folder = environ.get("DOCKER_CONFIG")
    return (Path(folder) if folder else Path.home() / ".docker") / "config.json"


def read_stored(registry: str) -> Stored:
    """What the Docker client of this user knows about a registry.

    Raises: RegistryError: config.json cannot be read.
    """
    path = config_path(os.environ)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = "{}"
    except OSError as error:
        msg = f"{path}: wanted Docker's client configuration, found: {error.strerror}"
        raise RegistryError(msg, trouble=Trouble.AUTH_DENIED) from error
    return parse_stored(text, registry=registry, where=str(path))


def parse_stored(text: str, *, registry: str, where: str) -> Stored:
    """Read what a config.json says about one registry.

    Shape: as Docker does, a helper of this registry goes before the store of all, and both
    before what lies in the file itself.
    Raises: RegistryError: the text is not a JSON object.
    """
    try:
        top: object = json.loads(text)
    except ValueError as error:
        # Not the error's text: it may quote the file, which holds logins.
        msg = f"{where}: wanted JSON, found something else at {_place(error)}"
        raise RegistryError(
            msg, trouble=Trouble.AUTH_DENIED, hint="mend the file or log in again"
        ) from None
    config = _table(top)
    helpers = {_host(key): str(name) for key, name in _table(config.get("credHelpers")).items()}
    auths = {_host(key): _table(entry) for key, entry in _table(config.get("auths")).items()}
    server = _DOCKER_HUB_KEY if registry == DOCKER_HUB else registry
    entry = auths.get(_host(server), {})
    return Stored(
        server=server,
        basic=_text(entry.get("auth")),
        identity_token=_text(entry.get("identitytoken")),
        helper=helpers.get(_host(server)) or _text(config.get("credsStore")),
    )


def _host(key: str) -> str:
    """The host of a key, which older clients wrote as a whole address."""
    return key.removeprefix("https://").removeprefix("http://").partition("/")[0]


def _place(error: ValueError) -> str:
    return f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "its start"


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
