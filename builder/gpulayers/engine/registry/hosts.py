"""How a registry's name becomes an address, and whether it is spoken to in plain http."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

DOCKER_HUB = "docker.io"
# Docker Hub's API lives on another host than its name says.
_DOCKER_HUB_API = "registry-1.docker.io"


def is_loopback(host: str) -> bool:
    """Whether ``HOST[:PORT]`` is this very machine: 127.0.0.0/8, ``localhost``, ``[::1]``."""
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def api_root(registry: str, *, insecure: Collection[str]) -> str:
    """The address of a registry's API, without the closing slash.

    Shape: plain http for loopback and for the names in ``insecure`` (``HOST[:PORT]``), https for
    all others.
    """
    host = _DOCKER_HUB_API if registry == DOCKER_HUB else registry
    plain = is_loopback(host) or registry in insecure
    return f"{'http' if plain else 'https'}://{host}/v2"


def may_send_login(realm: str, *, asked_by: str) -> bool:
    """Whether a token server may see a login.

    Never in plain http, but on this machine or for a registry that itself is asked in plain http.
    """
    server = urlsplit(realm)
    if server.scheme == "https" or is_loopback(server.netloc):
        return True
    return urlsplit(asked_by).scheme == "http"
