"""The real transport against a small server on this machine: bytes, silence, redirects."""

import gzip
import time
from pathlib import Path

import pytest
from registry_server import Asked, Reply, Server

from gpulayers.engine.registry import Patience, Registry, RegistryError, Trouble, digest_of
from gpulayers.engine.registry.transport import NoAnswerError, Request
from gpulayers.engine.registry.wire import Wire
from gpulayers.refs import ImageRef

pytestmark = pytest.mark.usefixtures("loopback", "no_login")
BLOB = b"some bytes" * 50


@pytest.fixture
def no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


def registry(*, tries: int = 4, timeout_s: float = 5.0) -> Registry:
    patience = Patience(tries=tries, sleep=lambda _: None)
    return Registry(transport=Wire(timeout_s=timeout_s), patience=patience)


def read_blob(server: Server, raw: bytes = BLOB, **how: int) -> bytes:
    with registry(tries=how.get("tries", 4)) as client:
        ref = ImageRef.parse(f"{server.host}/a")
        return client.blob(ref, digest_of(raw), limit_bytes=how.get("limit_bytes", 1 << 20))


def test_a_body_that_ends_early_is_asked_for_again() -> None:
    replies = [Reply(status=200, body=BLOB, cut=40), Reply(status=200, body=BLOB)]
    with Server(lambda _: replies.pop(0)) as server:
        assert read_blob(server) == BLOB
        assert len(server.asked) == 2


def test_a_connection_closed_without_a_word_is_asked_again() -> None:
    replies = [None, None, Reply(status=200, body=BLOB)]
    with Server(lambda _: replies.pop(0)) as server:
        assert read_blob(server) == BLOB


def test_a_server_that_always_hangs_up_is_named_with_the_reason() -> None:
    with Server(lambda _: None) as server:
        with pytest.raises(RegistryError, match="asked 2 times: Remote end closed") as caught:
            read_blob(server, tries=2)
        assert server.host in str(caught.value)


def test_nothing_listening_is_could_not_ask() -> None:
    with Server(lambda _: None) as server:
        host = server.host
    with (
        registry(tries=2) as client,
        pytest.raises(RegistryError, match="Connection refused") as caught,
    ):
        client.ping(host)
    assert caught.value.trouble is Trouble.UNREACHABLE


def test_silence_is_waited_for_no_longer_than_the_limit() -> None:
    def slow(_: Asked) -> Reply:
        time.sleep(0.3)
        return Reply(status=200)

    with (
        Server(slow) as server,
        registry(tries=1, timeout_s=0.05) as client,
        pytest.raises(RegistryError, match=r"no answer within 0\.05 s"),
    ):
        client.ping(server.host)


def test_tls_asked_of_a_plain_server_is_said_once() -> None:
    with Server(lambda _: Reply(status=200)) as server:
        request = Request(
            method="GET",
            url=f"https://{server.host}/v2/",
            headers={},
            body=None,
            registry=server.host,
            right="",
            limit_bytes=1,
        )
        wire = Wire(timeout_s=5)
        with pytest.raises(NoAnswerError) as caught:
            wire.send(request)
        wire.close()
    assert not caught.value.again
    assert "SSL" in caught.value.reason


def test_a_body_over_the_limit_is_not_read_on() -> None:
    with Server(lambda _: Reply(status=200, body=BLOB)) as server:
        with pytest.raises(RegistryError, match="more than 100 bytes") as caught:
            read_blob(server, limit_bytes=100)
        assert len(server.asked) == 1
    assert caught.value.trouble is Trouble.UNREADABLE


def test_bytes_come_as_they_are_stored_even_where_a_store_labels_them_gzip() -> None:
    stored = gzip.compress(BLOB, mtime=0)
    with Server(
        lambda _: Reply(status=200, body=stored, headers={"Content-Encoding": "gzip"})
    ) as server:
        assert read_blob(server, stored) == stored
        assert server.asked[0].headers["accept-encoding"] == "identity"


def test_one_connection_serves_one_question_after_the_other() -> None:
    with Server(lambda _: Reply(status=404)) as server, registry() as client:
        ref = ImageRef.parse(f"{server.host}/a:b")
        for _ in range(3):
            assert client.resolve(ref) is None
        assert len({each.peer for each in server.asked}) == 1


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Server(lambda _: Reply(status=200)) as server, registry(tries=1) as client:
        assert client.ping(server.host)


def test_a_netrc_entry_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    with Server(lambda _: Reply(status=200)) as server, registry() as client:
        client.ping(server.host)
        assert server.asked[0].login == ""
