"""What the client asks, and what it makes of the answers; the transport is a fake."""

import pytest
from registry_fakes import (
    CONFIG,
    HOST,
    INDEX,
    MANIFEST,
    REF,
    ROOT,
    FakeTransport,
    answer,
    client,
    held,
    refusal,
)

from gpulayers.engine.registry import (
    NoAnswerError,
    Registry,
    RegistryError,
    Trouble,
    digest_of,
)
from gpulayers.engine.registry.model import OCI_INDEX, OCI_MANIFEST
from gpulayers.refs import ImageRef, Platform

AMD64 = Platform.parse("linux/amd64")
ARM64 = Platform.parse("linux/arm64")


def refused(transport: FakeTransport) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        client(transport).resolve(REF)
    return caught.value


def test_a_tag_resolves_with_one_head_that_accepts_indexes_and_manifests() -> None:
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/one": held(INDEX, OCI_INDEX)})
    assert client(fake).resolve(REF) == digest_of(INDEX)
    assert fake.lines() == [f"HEAD {ROOT}/team/app/manifests/one"]
    assert {OCI_INDEX, OCI_MANIFEST} <= set(fake.asked[0].headers["Accept"].split(", "))
    assert fake.asked[0].right == "team/app:pull"


def test_404_is_a_no_and_is_asked_once() -> None:
    fake = FakeTransport({})
    assert client(fake).resolve(REF) is None
    assert len(fake.asked) == 1


def test_a_head_without_a_digest_is_followed_by_a_get() -> None:
    fake = FakeTransport(
        {
            f"HEAD {ROOT}/team/app/manifests/one": answer(200),
            f"GET {ROOT}/team/app/manifests/one": answer(200, MANIFEST, content_type=OCI_MANIFEST),
        }
    )
    assert client(fake).resolve(REF) == digest_of(MANIFEST)


def test_no_answer_is_asked_again_with_growing_waits_and_then_says_so() -> None:
    waits: list[float] = []
    silent = NoAnswerError("Connection refused", again=True)
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/one": [silent]})
    with pytest.raises(
        RegistryError, match=r"127\.0\.0\.1:5000, asked 4 times: Connection refused"
    ) as caught:
        client(fake, waits=waits).resolve(REF)
    assert caught.value.trouble is Trouble.UNREACHABLE
    assert waits == [0.5, 1.0, 2.0]
    assert caught.value.exit_code == 9


def test_what_asking_again_cannot_mend_is_asked_once() -> None:
    broken = NoAnswerError("certificate verify failed", again=False)
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/one": [broken]})
    error = refused(fake)
    assert "asked once: certificate verify failed" in str(error)
    assert "REQUESTS_CA_BUNDLE" in error.hint


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_status_is_asked_again(status: int) -> None:
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/one": [answer(status), held(MANIFEST)]})
    assert client(fake).resolve(REF) == digest_of(MANIFEST)
    assert len(fake.asked) == 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_denial_is_asked_once_and_names_registry_repository_and_login(status: int) -> None:
    fake = FakeTransport(
        {
            f"HEAD {ROOT}/team/app/manifests/one": refusal(
                status, "UNAUTHORIZED", "authentication required"
            )
        }
    )
    error = refused(fake)
    assert len(fake.asked) == 1
    assert error.trouble is Trouble.AUTH_DENIED
    assert f"{HOST} denied access to team/app (HTTP {status}" in str(error)
    assert f"docker login {HOST}" in error.hint


def test_a_spent_pull_limit_that_is_answered_as_401_is_a_rate_limit() -> None:
    fake = FakeTransport(
        {f"HEAD {ROOT}/team/app/manifests/one": answer(401, ratelimit_remaining="0;w=21600")}
    )
    assert refused(fake).trouble is Trouble.RATE_LIMIT


def test_docker_hub_is_asked_at_its_api_host_and_others_over_https() -> None:
    fake = FakeTransport({})
    registry = client(fake)
    registry.resolve(ImageRef.parse("debian:12"))
    registry.resolve(ImageRef.parse("ghcr.io/a/b:c"))
    assert [each.url for each in fake.asked] == [
        "https://registry-1.docker.io/v2/library/debian/manifests/12",
        "https://ghcr.io/v2/a/b/manifests/c",
    ]
    assert fake.asked[0].registry == "docker.io"


def test_an_insecure_registry_is_named_by_argument_or_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPULAYERS_INSECURE_REGISTRIES", "other:80, hub.lan:5000")
    fake = FakeTransport({})
    Registry(transport=fake).resolve(ImageRef.parse("hub.lan:5000/a:b"))
    Registry(transport=fake, insecure={"lab:1"}).resolve(ImageRef.parse("lab:1/a:b"))
    Registry(transport=fake, insecure=()).resolve(ImageRef.parse("hub.lan:5000/a:b"))
    assert [each.url.partition(":")[0] for each in fake.asked] == ["http", "http", "https"]


def test_many_references_are_each_asked_once() -> None:
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/t1": held(MANIFEST)})
    refs = [REF.with_tag(f"t{number}") for number in (0, 1, 2, 1)]
    assert client(fake).resolve_many(refs, workers=3) == {
        f"{HOST}/team/app:t0": None,
        f"{HOST}/team/app:t1": digest_of(MANIFEST),
        f"{HOST}/team/app:t2": None,
    }
    assert len(fake.asked) == 3


def test_one_that_could_not_be_asked_fails_the_whole_look_up() -> None:
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/t1": refusal(403, "DENIED", "no")})
    with pytest.raises(RegistryError, match="app:t1"):
        client(fake).resolve_many([REF.with_tag(f"t{number}") for number in range(3)])


def images(platform: Platform, top: bytes = INDEX, media_type: str = OCI_INDEX) -> object:
    digest = digest_of(CONFIG)
    fake = FakeTransport(
        {
            f"GET {ROOT}/team/app/manifests/one": held(top, media_type),
            f"GET {ROOT}/team/app/manifests/{digest_of(MANIFEST)}": held(MANIFEST),
            f"GET {ROOT}/team/app/blobs/{digest}": answer(200, CONFIG),
        }
    )
    return client(fake).manifest(REF, platform)


def test_reading_for_a_platform_walks_the_index_past_its_attestations() -> None:
    assert getattr(images(AMD64), "digest", "") == digest_of(MANIFEST)


@pytest.mark.parametrize(
    "top", [(INDEX, OCI_INDEX), (MANIFEST, OCI_MANIFEST)], ids=["index", "single"]
)
def test_a_missing_platform_is_named_with_those_that_are_there(top: tuple[bytes, str]) -> None:
    with pytest.raises(RegistryError, match=r"linux/arm64, found linux/amd64$") as caught:
        images(ARM64, *top)
    assert caught.value.trouble is Trouble.NO_PLATFORM


def test_bytes_with_another_digest_than_asked_for_are_refused() -> None:
    asked = REF.with_digest(digest_of(b"other"))
    fake = FakeTransport({f"GET {ROOT}/team/app/manifests/{asked.digest}": answer(200, MANIFEST)})
    with pytest.raises(RegistryError, match=f"wanted {asked.digest}, found {digest_of(MANIFEST)}"):
        client(fake).raw(asked)


def test_a_blob_that_is_not_what_its_digest_says_is_refused() -> None:
    digest = digest_of(b"wanted")
    fake = FakeTransport({f"GET {ROOT}/team/app/blobs/{digest}": answer(200, b"other")})
    with pytest.raises(RegistryError, match=f"found {digest_of(b'other')}"):
        client(fake).blob(REF, digest)
    assert fake.asked[0].limit_bytes == 64 << 20


def test_a_missing_blob_is_an_error_that_names_it() -> None:
    digest = digest_of(b"gone")
    with pytest.raises(RegistryError, match=digest) as caught:
        client(FakeTransport({})).blob(REF, digest)
    assert caught.value.trouble is Trouble.NOT_FOUND


@pytest.mark.parametrize(("status", "let_in"), [(200, True), (401, False)])
def test_a_ping_tells_whether_the_registry_lets_us_in(*, status: int, let_in: bool) -> None:
    fake = FakeTransport({f"GET {ROOT}/": answer(status)})
    assert client(fake).ping(HOST) is let_in


def test_a_ping_of_something_else_than_a_registry_is_an_error() -> None:
    with pytest.raises(RegistryError, match=f"cannot reach the registry {HOST}"):
        client(FakeTransport({})).ping(HOST)


def test_leaving_the_client_closes_its_transport() -> None:
    fake = FakeTransport({})
    with client(fake):
        pass
    assert fake.closed


def test_no_login_of_a_foreign_text_reaches_a_message() -> None:
    words = (
        "bad login Bearer abcdefgh12345678 token=s3cret-one see https://u:pass@h/x?sig=s3cret-two"
    )
    fake = FakeTransport({f"HEAD {ROOT}/team/app/manifests/one": refusal(403, "DENIED", words)})
    text = str(refused(fake))
    assert "DENIED" in text
    assert not [each for each in ("abcdefgh", "s3cret", "pass@") if each in text]
