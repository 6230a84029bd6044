"""What the client writes, deletes and lists; the transport is a fake."""

import pytest
from registry_fakes import (
    HOST,
    INDEX,
    MANIFEST,
    REF,
    ROOT,
    FakeTransport,
    answer,
    client,
    refusal,
)

from gpulayers.engine.registry import RegistryError, Response, Trouble, digest_of
from gpulayers.engine.registry.model import OCI_MANIFEST


def test_a_manifest_is_written_as_its_very_bytes() -> None:
    url = f"PUT {ROOT}/team/app/manifests/one"
    fake = FakeTransport({url: answer(201, docker_content_digest=digest_of(MANIFEST))})
    assert client(fake).put_manifest(REF, MANIFEST, OCI_MANIFEST) == digest_of(MANIFEST)
    assert fake.asked[0].body == MANIFEST
    assert fake.asked[0].headers["Content-Type"] == OCI_MANIFEST
    assert fake.asked[0].right == "team/app:push"


def test_a_registry_that_stored_something_else_is_refused() -> None:
    url = f"PUT {ROOT}/team/app/manifests/one"
    fake = FakeTransport({url: answer(201, docker_content_digest=digest_of(INDEX))})
    with pytest.raises(RegistryError) as caught:
        client(fake).put_manifest(REF, MANIFEST, OCI_MANIFEST)
    assert caught.value.trouble is Trouble.DIGEST


WRITE_REFUSALS = {
    "ecr": (
        refusal(400, "TAG_INVALID", "tag x in repository y cannot be overwritten"),
        Trouble.IMMUTABLE_TAG,
    ),
    "code": (refusal(409, "TAG_IMMUTABLE", ""), Trouble.IMMUTABLE_TAG),
    "harbor": (refusal(412, "PRECONDITION", "tag configured as immutable"), Trouble.IMMUTABLE_TAG),
    "too-big": (answer(413, b"<html>"), Trouble.TOO_BIG),
    "ghcr": (refusal(403, "DENIED", "not allowed to Write"), Trouble.PUSH_PERMISSION),
    "denied": (refusal(401, "UNAUTHORIZED", "who are you"), Trouble.AUTH_DENIED),
}


@pytest.mark.parametrize(("found", "trouble"), WRITE_REFUSALS.values(), ids=WRITE_REFUSALS)
def test_a_refused_write_is_asked_once_and_has_its_class(found: Response, trouble: Trouble) -> None:
    fake = FakeTransport({f"PUT {ROOT}/team/app/manifests/one": found})
    with pytest.raises(RegistryError, match="cannot write 127") as caught:
        client(fake).put_manifest(REF, MANIFEST, OCI_MANIFEST)
    assert caught.value.trouble is trouble
    assert caught.value.hint
    assert len(fake.asked) == 1


def test_tags_come_from_all_pages() -> None:
    first, second = b'{"name":"team/app","tags":["b","a"]}', b'{"tags":["c"]}'
    more = '</v2/team/app/tags/list?n=1000&last=b>; rel="next"'
    fake = FakeTransport(
        {
            f"GET {ROOT}/team/app/tags/list?n=1000": answer(200, first, link=more),
            f"GET {ROOT}/team/app/tags/list?n=1000&last=b": answer(200, second, link=more),
        }
    )
    assert client(fake).tags(REF.name) == ("a", "b", "c")


def test_a_repository_that_does_not_exist_has_no_tags() -> None:
    assert client(FakeTransport({})).tags(REF.name) == ()


@pytest.mark.parametrize(("status", "deleted"), [(202, True), (404, False)])
def test_deleting_by_digest_tells_whether_it_was_there(*, status: int, deleted: bool) -> None:
    ref = REF.with_digest(digest_of(MANIFEST))
    fake = FakeTransport({f"DELETE {ROOT}/team/app/manifests/{ref.digest}": answer(status)})
    assert client(fake).delete_manifest(ref) is deleted


def test_deleting_by_tag_is_refused_without_asking() -> None:
    fake = FakeTransport({})
    with pytest.raises(RegistryError, match="wanted a digest, found a tag"):
        client(fake).delete_manifest(REF)
    assert fake.asked == []


def test_asking_whether_one_may_push_cancels_the_upload_it_opened() -> None:
    fake = FakeTransport(
        {
            f"POST {ROOT}/team/app/blobs/uploads/": answer(
                202, location=f"https://{HOST}/v2/up/1?s=x"
            ),
            f"DELETE {ROOT}/up/1?s=x": answer(204),
        }
    )
    assert client(fake).can_push(REF.name)
    assert fake.lines()[-1] == f"DELETE {ROOT}/up/1?s=x"


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_a_denied_upload_is_a_no(status: int) -> None:
    fake = FakeTransport({f"POST {ROOT}/team/app/blobs/uploads/": answer(status)})
    assert not client(fake).can_push(REF.name)


def test_an_upload_on_another_host_does_not_use_the_registrys_login() -> None:
    opened = answer(202, location="https://store.lan/up/1")
    fake = FakeTransport(
        {
            f"POST {ROOT}/team/app/blobs/uploads/": opened,
            f"PUT https://store.lan/up/1?digest={digest_of(b'x')}": answer(201),
        }
    )
    assert client(fake).put_blob(REF.name, b"x") == digest_of(b"x")
    assert [each.registry for each in fake.asked] == [HOST, HOST, "store.lan"]


def test_a_blob_that_is_there_is_not_sent_again() -> None:
    fake = FakeTransport({f"HEAD {ROOT}/team/app/blobs/{digest_of(b'x')}": answer(200)})
    client(fake).put_blob(REF.name, b"x")
    assert len(fake.asked) == 1
