"""Answers to a registry's 401: logins looked up, tokens fetched by oras, both kept."""

import base64
import importlib
import logging
import shutil
import threading
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from typing import Protocol

import requests

from gpulayers.engine.registry.hosts import may_send_login
from gpulayers.engine.registry.login import Stored, read_stored
from gpulayers.engine.registry.refusal import RegistryError, Trouble
from gpulayers.engine.registry.transport import NoAnswerError, Request
from gpulayers.secrecy import hide

CLIENT = "gpulayers"
# The user name under which helpers hand out an identity token instead of a password.
_TOKEN_USER = "<token>"  # noqa: S105 - a name, not a secret


class _Challenge(Protocol):
    realm: str | None
    service: str | None
    scope: str | None


class _TokenBackend(Protocol):
    """What we use of ``oras.auth.TokenAuth``."""

    def set_basic_auth(self, username: str, password: str) -> None: ...

    def authenticate_request(
        self, original: SimpleNamespace, headers: dict[str, str]
    ) -> tuple[dict[str, str], bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Login:
    """One registry's login; without both fields it is nobody's."""

    basic: str
    identity_token: str

    def __repr__(self) -> str:
        return "_Login(…)"

    @property
    def pair(self) -> tuple[str, str]:
        """User and password."""
        user, _, password = base64.b64decode(self.basic).decode().partition(":")
        return user, password


class Logins:
    """Authorization headers by registry and right; may be used from any thread."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._headers: dict[tuple[str, str], str] = {}
        self._logins: dict[str, _Login] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        # oras warns on stderr about what our own errors say with more context.
        talk = logging.getLogger("oras.logger")
        talk.addHandler(logging.NullHandler())
        talk.propagate = False

    def known(self, request: Request) -> str:
        """The header that worked for this right before, or an empty text."""
        return self._headers.get((request.registry, request.right), "")

    def answer(
        self, request: Request, *, challenge: str, refused: str, session: requests.Session
    ) -> str:
        """A header to try after a 401, or an empty text where there is none to be had.

        Shape: ``challenge`` is the ``WWW-Authenticate`` header; ``refused`` is the header that was
        refused, empty for none. A token that ran out is thus fetched anew, by one thread for all.
        Raises: RegistryError: the login cannot be looked up, or must not be sent.
            NoAnswerError: the token server gave no answer.
        """
        key = (request.registry, request.right)
        with self._lock(*key):
            known = self.known(request)
            if known not in {"", refused}:
                return known
            login = self._login(request.registry, again=bool(refused))
            tokens = _TokenServer(session, self._timeout_s)
            header = _header(challenge, login, request=request, tokens=tokens)
            self._headers[key] = header
            hide(header.partition(" ")[2])
            return header

    def _lock(self, registry: str, right: str) -> threading.Lock:
        return self._locks.setdefault((registry, right), threading.Lock())

    def _login(self, registry: str, *, again: bool) -> _Login:
        with self._lock(registry, ""):
            if again or registry not in self._logins:
                self._logins[registry] = _look_up(read_stored(registry))
            return self._logins[registry]


def _header(challenge: str, login: _Login, *, request: Request, tokens: "_TokenServer") -> str:
    if challenge.lower().startswith("basic"):
        return f"Basic {login.basic}" if login.basic else ""
    asked: _Challenge = importlib.import_module("oras.auth.utils").parse_auth_header(challenge)
    if not asked.realm:
        return ""
    if (login.basic or login.identity_token) and not may_send_login(
        asked.realm, asked_by=request.url
    ):
        msg = f"{request.registry} wants its login sent to {asked.realm} in plain http"
        raise RegistryError(
            msg, trouble=Trouble.AUTH_DENIED, hint="ask the registry's owner for an https realm"
        )
    if login.identity_token:
        return tokens.exchange(asked, login.identity_token)
    return _fetch(challenge, login, tokens)


def _fetch(challenge: str, login: _Login, tokens: "_TokenServer") -> str:
    """A token by oras, for the login or, without one, for nobody."""
    oras = importlib.import_module("oras.auth")
    backend: _TokenBackend = oras.get_auth_backend("token", session=tokens)
    if login.basic:
        backend.set_basic_auth(*login.pair)
    refusal = SimpleNamespace(headers={"Www-Authenticate": challenge})
    headers, changed = backend.authenticate_request(refusal, {})
    return headers["Authorization"] if changed else ""


class _TokenServer:
    """The session that oras asks for tokens with.

    oras takes any status but 200 for a refusal; a server that is overloaded refused nobody.
    """

    def __init__(self, session: requests.Session, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    def get(
        self, url: str, *, headers: dict[str, str], params: dict[str, str], verify: bool
    ) -> requests.Response:
        """What oras asks with a login."""
        return self._ask("GET", url, headers=headers, params=params, verify=verify)

    def request(
        self, method: str, url: str, *, params: dict[str, str], verify: bool
    ) -> requests.Response:
        """What oras asks without a login."""
        return self._ask(method, url, headers={}, params=params, verify=verify)

    def exchange(self, asked: _Challenge, identity_token: str) -> str:
        """An access token for an identity token, which oras cannot do.

        Source: https://distribution.github.io/distribution/spec/auth/oauth/ (read 2025-12-01).
        """
        form = {
            "grant_type": "refresh_token",
            "refresh_token": identity_token,
            "client_id": CLIENT,
            "service": asked.service or "",
            "scope": asked.scope or "",
        }
        response = self._session.post(asked.realm or "", data=form, timeout=self._timeout_s)
        _see_answered(response)
        answer: object = response.json() if response.ok else {}
        token = answer.get("access_token") if isinstance(answer, dict) else None
        return f"Bearer {token}" if isinstance(token, str) else ""

    def _ask(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        params: dict[str, str],
        verify: bool,
    ) -> requests.Response:
        response = self._session.request(
            method, url, headers=headers, params=params, verify=verify, timeout=self._timeout_s
        )
        _see_answered(response)
        return response


def _see_answered(response: requests.Response) -> None:
    limited = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    if limited or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        msg = f"its token server answered HTTP {response.status_code}"
        trouble = Trouble.RATE_LIMIT if limited else Trouble.UNREACHABLE
        raise NoAnswerError(msg, again=True, trouble=trouble)


def _look_up(stored: Stored) -> _Login:
    basic = _ask_helper(stored) if stored.helper else stored.basic
    login = _Login(basic=basic, identity_token=stored.identity_token)
    try:
        user, secret = login.pair
        for value in (basic, secret, stored.identity_token):
            hide(value)
    except ValueError:
        msg = f"Docker's config.json: the auth of {stored.server} is not USER:PASSWORD in base64"
        raise RegistryError(
            msg, trouble=Trouble.AUTH_DENIED, hint=f"docker login {stored.server}"
        ) from None
    return _Login(basic="", identity_token=secret) if user == _TOKEN_USER else login


def _ask_helper(stored: Stored) -> str:
    """``USER:PASSWORD`` in base64 from a credential helper, empty where it knows none."""
    program = f"docker-credential-{stored.helper}"
    if shutil.which(program) is None:
        msg = f"the login of {stored.server} is kept by {program}, which is not on PATH"
        raise RegistryError(
            msg,
            trouble=Trouble.AUTH_DENIED,
            hint=f"install {program}, or take it out of Docker's config.json and log in again",
        )
    backend = importlib.import_module("oras.auth").get_auth_backend("token")
    container = importlib.import_module("oras.container").Container("any/name", stored.server)
    # Set beforehand, since oras 0.2 reads ~/.docker even where DOCKER_CONFIG names another folder.
    backend._auth_config = {"auths": {}, "credHelpers": {stored.server: stored.helper}}  # noqa: SLF001
    try:
        backend.load_configs(container)
    except (KeyError, TypeError, ValueError):
        # Not the error's text: it may quote the answer, which is a login.
        msg = f"{program} answered something else than a login for {stored.server}"
        raise RegistryError(
            msg, trouble=Trouble.AUTH_DENIED, hint=f"docker login {stored.server}"
        ) from None
    found: object = getattr(backend, "_basic_auth", "")
    return found if isinstance(found, str) else ""
