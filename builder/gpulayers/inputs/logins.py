"""Logins of package indexes and archives: from addresses, variables, netrc files and keyrings."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from gpulayers.engine import process
from gpulayers.secrecy import hide

PASSWORD = re.compile(r"""\bpassword\s+("(?:\\.|[^"\\])*"|\S+)""")
URL_LOGIN = re.compile(r"""(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s"'@]+@""")
# A user name alone is often a token, and tokens are long.
TOKEN = 16
KEYRING_S = 30.0
# BuildKit knows these by name: they reach the steps, and neither their cache nor the image.
PROXIES = ("ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
# Address or host, then user, to a password or "".
Keyring = Callable[[str, str], str]


@dataclass(slots=True, kw_only=True)
class Logins:
    """The logins of indexes.

    Shape: ``keyring`` is asked for a user's password where nothing else has one, or None.
    """

    environment: Mapping[str, str]
    keyring: Keyring | None
    _passwords: dict[tuple[str, str], str] = field(default_factory=dict)

    def complete(self, url: str, name: str = "") -> str:
        """The address of an index with its login in it, hidden from now on.

        Source: uv's documentation, "Providing credentials directly" and "Using keyring": the
        variables of a named index go before its address, and a keyring is asked last.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        if parts.scheme not in {"http", "https"}:
            return url
        user = self._variable(name, "USERNAME") or unquote(parts.username or "")
        password = self._variable(name, "PASSWORD") or unquote(parts.password or "")
        if user and not password:
            password = self._ask(parts, user)
        hide(password or (user if len(user) >= TOKEN else ""))
        if not user and not password:
            return url
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return parts._replace(netloc=f"{login}@{_host(parts)}").geturl()

    def _variable(self, name: str, what: str) -> str:
        key = re.sub(r"[^A-Z0-9]", "_", name.upper())
        return self.environment.get(f"UV_INDEX_{key}_{what}", "") if name else ""

    def _ask(self, parts: SplitResult, user: str) -> str:
        if self.keyring is None:
            return ""
        host = _host(parts)
        bare = parts._replace(netloc=host).geturl()
        for service in (bare, host):
            if (service, user) not in self._passwords:
                self._passwords[service, user] = self.keyring(service, user)
            if password := self._passwords[service, user]:
                return password
        return ""


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def ask_keyring(service: str, user: str) -> str:
    """The password that the program ``keyring`` has, or ""."""
    if shutil.which("keyring") is None:
        return ""
    return process.ask_secret(["keyring", "get", service, user], timeout_s=KEYRING_S)


def without_logins(text: str) -> str:
    """The text with its addresses as they are without a login."""
    return URL_LOGIN.sub(r"\g<scheme>", text)


def hide_passwords(text: str) -> str:
    """The same text, of a netrc file or one of apt's; its passwords are hidden from now on."""
    for word in PASSWORD.findall(text):
        hide(word.strip('"'))
    return text


def proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The machine's proxies by their upper-case names; their passwords are hidden from now on."""
    found = {name: environment.get(name) or environment.get(name.lower(), "") for name in PROXIES}
    for value in found.values():
        login, at, _ = value.rpartition("@")
        hide(unquote(login.rpartition(":")[2]) if at else "")
    return {name: value for name, value in found.items() if value}


def netrc(environment: Mapping[str, str]) -> str:
    """The user's netrc file, or ""."""
    home = Path(environment.get("HOME") or "/")
    named = environment.get("NETRC")
    return hide_passwords(_text(Path(named) if named else home / ".netrc"))


def apt_auth(root: Path) -> str:
    """The machine's logins for OS archives, or ""; those that we may not read are left out."""
    folder = root / "etc" / "apt"
    files = [folder / "auth.conf", *sorted((folder / "auth.conf.d").glob("*.conf"))]
    return hide_passwords("\n".join(text for file in files if (text := _text(file))))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
