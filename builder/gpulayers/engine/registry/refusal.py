"""What goes wrong with a registry: one error class, and the words for each way."""

import re
from enum import StrEnum
from http import HTTPStatus

from gpulayers.engine.process import redact
from gpulayers.errors import RemoteError

TEXT_MAX = 300
_LOGIN = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}")
# Amazon ECR, the code that several registries use, Harbor ("configured as immutable").
_IMMUTABLE = ("cannot be overwritten", "tag_immutable", "is immutable", "as immutable")
_QUERY = re.compile(r"\?[^\s'\"()]*")


class Trouble(StrEnum):
    """The classes of what can go wrong, as a report spells them."""

    UNREACHABLE = "registry-unreachable"
    RATE_LIMIT = "rate-limit"
    SERVER = "registry-error"
    AUTH_DENIED = "auth-denied"
    PUSH_PERMISSION = "push-permission"
    IMMUTABLE_TAG = "immutable-tag"
    TOO_BIG = "layer-too-big"
    NOT_FOUND = "not-found"
    NO_PLATFORM = "no-platform"
    DIGEST = "digest-mismatch"
    UNREADABLE = "unreadable-answer"


class RegistryError(RemoteError):
    """A registry refused, could not be asked, or said what cannot be right.

    Shape: ``trouble`` is the class of it; ``status`` the HTTP status, 0 where there was none.
    """

    def __init__(self, message: str, *, trouble: Trouble, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.trouble = trouble
        self.status = status


def clean(text: str) -> str:
    """One line of foreign text that is fit to print: no logins, no URL queries, not too long.

    Signed URLs of blob stores carry their signature in the query.
    """
    line = " ".join(text.split())
    line = _QUERY.sub("?…", _LOGIN.sub(r"\1 ***", redact(line)))
    return line if len(line) <= TEXT_MAX else f"{line[:TEXT_MAX]}…"


def classify(status: int, text: str, *, limited: bool) -> Trouble:
    """The class of an answer that is not the wanted one.

    Shape: ``text`` is what the registry wrote; ``limited`` tells that its headers say that no
    pulls are left, which some registries answer as 401.
    """
    words = text.lower()
    denied = status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    if status == HTTPStatus.TOO_MANY_REQUESTS or "toomanyrequests" in words or (denied and limited):
        return Trouble.RATE_LIMIT
    if status < HTTPStatus.INTERNAL_SERVER_ERROR and any(each in words for each in _IMMUTABLE):
        return Trouble.IMMUTABLE_TAG
    if denied:
        package = "write_package" in words or "not allowed to write" in words
        return Trouble.PUSH_PERMISSION if package else Trouble.AUTH_DENIED
    return {404: Trouble.NOT_FOUND, 413: Trouble.TOO_BIG}.get(status, Trouble.SERVER)


def hint_for(trouble: Trouble, *, registry: str, repository: str) -> str:
    """What to do next about a class of trouble, for one registry and repository."""
    login = "docker login" if registry == "docker.io" else f"docker login {registry}"
    hints = {
        Trouble.UNREACHABLE: f"see that {registry} is up and this machine reaches it; a registry"
        " that speaks plain http must be named as insecure, one behind your own certificate"
        " authority needs REQUESTS_CA_BUNDLE",
        Trouble.RATE_LIMIT: f"wait, or log in for a higher limit ({login}), or use a mirror",
        Trouble.SERVER: "try again; if it stays, look into the registry's log",
        Trouble.AUTH_DENIED: f"{login}, with an account that may use {repository}",
        Trouble.PUSH_PERMISSION: f"give this account or workflow write access to {repository}"
        " (on GitHub: `packages: write` and the package's access list)",
        Trouble.IMMUTABLE_TAG: "an immutable tag stays where it is: build under another tag,"
        " or promote what it points at",
        Trouble.TOO_BIG: "raise the registry's (or its proxy's) limit on bodies,"
        " or cut the step into smaller ones",
        Trouble.NOT_FOUND: "see that it was pushed to this registry under this name",
    }
    return hints.get(trouble, "")


def words_for(trouble: Trouble, *, registry: str, repository: str) -> str:
    """What happened, in words, for one registry and repository."""
    words = {
        Trouble.RATE_LIMIT: f"{registry} says too many requests",
        Trouble.AUTH_DENIED: f"{registry} denied access to {repository}",
        Trouble.PUSH_PERMISSION: f"{registry} denied writing to {repository}",
        Trouble.IMMUTABLE_TAG: f"{registry} holds this tag of {repository} as immutable",
        Trouble.TOO_BIG: f"{registry} takes no body of this size",
        Trouble.NOT_FOUND: f"{registry} has no such thing in {repository}",
    }
    return words.get(trouble, f"{registry} answered what was not expected")
