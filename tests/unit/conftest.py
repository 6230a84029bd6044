"""Unit tests touch no program, no network and no home folder: a fence around them says so."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from gpulayers import secrecy

# Started in the background of a shell we inherit that Ctrl-C is ignored; so would our children.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Few examples, often: the suite is to be quick. `--hypothesis-profile=default` tries more.
settings.register_profile("quick", max_examples=20, deadline=None)
settings.load_profile("quick")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OutsideWorldError(Exception):
    """A unit test reached for the outside world; the message says what to use instead."""


@pytest.fixture
def own_processes() -> None:
    """Ask for this where starting a process is itself what is tested."""


@pytest.fixture
def loopback() -> None:
    """Ask for this where a real client talks to a small server inside the test."""


@pytest.fixture(autouse=True)
def nothing_hidden() -> Iterator[None]:
    """What a test hides would be blanked in all that come after it."""
    yield
    secrecy.forget()


@pytest.fixture(autouse=True)
def fence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block what a unit test must not do, but for what it asked for by name."""
    asked = request.fixturenames
    if "own_processes" not in asked:
        # On the class, so that `from subprocess import Popen`, run() and check_output() stop too.
        monkeypatch.setattr(subprocess.Popen, "__init__", _no_process)
    inside = LOOPBACK if "loopback" in asked else ()
    _fence_sockets(monkeypatch, inside)
    monkeypatch.setattr(Path, "home", _no_home)


def _no_process(_self: object, args: object, *_more: object, **_named: object) -> None:
    msg = (
        f"a unit test started {args!r}: hand in a fake that keeps what it was asked, move the test "
        "to tests/engine, or ask for the fixture own_processes if the process is what is tested"
    )
    raise OutsideWorldError(msg)


def _no_home() -> Path:
    msg = "a unit test asked for the home folder: hand in a folder (tmp_path) as an argument"
    raise OutsideWorldError(msg)


def _fence_sockets(monkeypatch: pytest.MonkeyPatch, inside: tuple[str, ...]) -> None:
    real_connect, real_connect_ex = socket.socket.connect, socket.socket.connect_ex
    real_getaddrinfo = socket.getaddrinfo

    def check(host: object) -> None:
        if host not in inside:
            msg = (
                f"a unit test connected to {host!r}: hand in a fake, move the test to "
                "tests/engine, or ask for the fixture loopback and serve on 127.0.0.1"
            )
            raise OutsideWorldError(msg)

    def connect(self: socket.socket, address: tuple[object, ...] | str) -> None:
        check(address[0] if isinstance(address, tuple) else address)
        real_connect(self, address)

    def connect_ex(self: socket.socket, address: tuple[object, ...] | str) -> int:
        check(address[0] if isinstance(address, tuple) else address)
        return real_connect_ex(self, address)

    def getaddrinfo(host: str | None, port: int | str | None, *more: int, **named: int) -> object:
        if host not in (None, *LOOPBACK):
            check(host)
        return real_getaddrinfo(host, port, *more, **named)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
