"""Tags move after all was checked, are written down before, and find their way back."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from catalog_samples import CHANNELS, NAME, image

from gpulayers.engine.registry import Descriptor, Manifest, RegistryError, Trouble, digest_of
from gpulayers.engine.registry.model import OCI_MANIFEST
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.history import History, Move
from gpulayers.promotion import (
    Carried,
    Journal,
    Target,
    carry,
    rollback,
)
from gpulayers.record import ImageRecord
from gpulayers.refs import ImageRef

STABLE = Target(channel="stable", channels=CHANNELS)
NOW = datetime(2026, 12, 2, tzinfo=UTC)


def manifest_of(digest: str) -> Manifest:
    config = Descriptor(media_type="", digest=digest, size_bytes=1, platform=None, annotations={})
    return Manifest(
        raw=digest.encode(),
        media_type=OCI_MANIFEST,
        digest=digest,
        config=config,
        layers=(),
        annotations={},
    )


class FakeRegistry:
    """Tags and their digests; keeps what was written; may lack a digest or refuse a tag."""

    def __init__(self, *, lacks: Sequence[str] = (), refuses: str = "", **tags: str) -> None:
        self.tags = tags
        self.lacks = lacks
        self.refuses = refuses
        self.written: list[tuple[str, str]] = []
        self.seen: list[int] = []
        self.history: History | None = None
        self.lock = threading.Lock()

    def resolve(self, ref: ImageRef) -> str | None:
        return self.tags.get(ref.tag)

    def raw(self, ref: ImageRef) -> Manifest:
        if ref.digest in self.lacks:
            msg = f"cannot read {ref.format()}: not there"
            raise RegistryError(msg, trouble=Trouble.NOT_FOUND, status=404)
        return manifest_of(ref.digest)

    def put_manifest(self, ref: ImageRef, raw: bytes, media_type: str) -> str:
        assert media_type == OCI_MANIFEST
        if ref.tag == self.refuses:
            msg = f"cannot write {ref.format()}"
            raise RegistryError(msg, trouble=Trouble.AUTH_DENIED, status=401, hint="docker login")
        if self.history is not None:
            self.seen.append(len(self.history.read()))
        self.tags[ref.tag] = raw.decode()
        self.written.append((ref.tag, raw.decode()))
        return raw.decode()


def journal(folder: Path, who: str = "promote") -> Journal:
    history = History(folder / "channels.json")
    return Journal(history=history, who="promote" if who == "promote" else "rollback", now=NOW)


def content(each: ImageRecord) -> str:
    return f"{each.tag}-{each.key[:12]}"


def moves(folder: Path) -> list[tuple[str, str, str, str]]:
    found = History(folder / "channels.json").read()
    return [(move.ref.removeprefix(f"{NAME}:"), move.old, move.new, move.who) for move in found]


def test_the_tags_of_a_channel_move_and_the_history_tells_from_what(tmp_path: Path) -> None:
    old, a, b = digest_of(b"old"), image("a"), image("b")
    registry = FakeRegistry(a=old)
    found = carry(registry, [a, b], STABLE, journal(tmp_path))
    assert registry.tags == {
        "a": a.digest,
        content(a): a.digest,
        "b": b.digest,
        content(b): b.digest,
    }
    assert moves(tmp_path) == [("a", old, a.digest, "promote"), ("b", "", b.digest, "promote")]
    assert [each.refs for each in found] == [
        (f"{NAME}:{content(a)}", f"{NAME}:a"),
        (f"{NAME}:{content(b)}", f"{NAME}:b"),
    ]


def test_a_move_is_written_down_before_it_is_made(tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.history = History(tmp_path / "channels.json")
    carry(registry, [image()], STABLE, journal(tmp_path))
    assert set(registry.seen) == {1}


def test_a_tag_that_points_there_already_is_no_move(tmp_path: Path) -> None:
    each = image()
    registry = FakeRegistry(**{"app": each.digest, content(each): each.digest})
    (found,) = carry(registry, [each], STABLE, journal(tmp_path))
    assert found == Carried(
        digest=each.digest, refs=(f"{NAME}:{content(each)}", f"{NAME}:app"), move=None
    )
    assert (registry.written, moves(tmp_path)) == ([], [])


@pytest.mark.parametrize("why", ["lacks the last", "content tag is taken"])
def test_no_tag_moves_when_the_last_image_does_not_pass_its_check(tmp_path: Path, why: str) -> None:
    images = [image("a"), image("b"), image("c")]
    registry = (
        FakeRegistry(lacks=[images[2].digest])
        if why == "lacks the last"
        else FakeRegistry(**{content(images[2]): digest_of(b"other")})
    )
    with pytest.raises(RegistryError):
        carry(registry, images, STABLE, journal(tmp_path))
    assert (registry.written, moves(tmp_path)) == ([], [])


def test_a_refusal_half_way_names_what_moved_and_what_did_not(tmp_path: Path) -> None:
    registry = FakeRegistry(refuses="b")
    with pytest.raises(RegistryError, match="moved before: 1; not tried: c") as caught:
        carry(registry, [image("a"), image("b"), image("c")], STABLE, journal(tmp_path))
    assert (caught.value.trouble, caught.value.hint) == (Trouble.AUTH_DENIED, "docker login")


def test_two_images_for_one_tag_are_refused(tmp_path: Path) -> None:
    other = image(
        digest=digest_of(b"arm"), ref=f"{NAME}@{digest_of(b'arm')}", platform="linux/arm64"
    )
    registry = FakeRegistry()
    with pytest.raises(RemoteError, match=r"wanted one image, found .*linux/arm64"):
        carry(registry, [image(), other], STABLE, journal(tmp_path))
    assert registry.written == []


def test_an_unknown_channel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="edge, stable, found 'beta'"):
        carry(FakeRegistry(), [image()], replace(STABLE, channel="beta"), journal(tmp_path))


# Back again.

APP = ImageRef.parse(f"{NAME}:app")
FIRST, SECOND, THIRD = (digest_of(text) for text in (b"1", b"2", b"3"))


def promoted(folder: Path, *digests: str) -> None:
    """The tag ``app`` had these, one after the other."""
    for old, new in zip(["", *digests], digests, strict=False):
        make = journal(folder).move("stable", APP, old=old, new=new)
        History(folder / "channels.json").append([make])


def test_a_rollback_gives_a_tag_what_it_had_before(tmp_path: Path) -> None:
    promoted(tmp_path, FIRST, SECOND)
    registry = FakeRegistry(app=SECOND)
    done = rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    assert registry.tags == {"app": FIRST}
    assert [(move.old, move.new, move.who) for move in done.moved] == [(SECOND, FIRST, "rollback")]
    assert done.kept == {}


def test_two_rollbacks_go_back_twice_and_the_third_stays(tmp_path: Path) -> None:
    promoted(tmp_path, FIRST, SECOND, THIRD)
    registry = FakeRegistry(app=THIRD)
    rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    assert registry.tags == {"app": FIRST}
    done = rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    assert done.kept == {APP.format(): f"it had nothing before {FIRST}"}
    assert registry.tags == {"app": FIRST}


def test_a_move_that_was_written_down_and_never_made_is_passed_over(tmp_path: Path) -> None:
    promoted(tmp_path, FIRST, SECOND, THIRD)
    registry = FakeRegistry(app=SECOND)
    rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    assert registry.tags == {"app": FIRST}


@pytest.mark.parametrize(
    ("tags", "reason"),
    [({}, "no such tag"), ({"app": THIRD}, "nothing is known here of what it had before")],
)
def test_a_tag_of_which_nothing_earlier_is_known_stays(
    tmp_path: Path, tags: dict[str, str], reason: str
) -> None:
    promoted(tmp_path, FIRST, SECOND)
    registry = FakeRegistry(**tags)
    done = rollback(registry, [APP], "stable", journal(tmp_path, "rollback"))
    assert reason in done.kept[APP.format()]
    assert (done.moved, registry.written) == ((), [])


def test_no_tag_goes_back_when_one_cannot(tmp_path: Path) -> None:
    promoted(tmp_path, FIRST, SECOND)
    other = APP.with_tag("other")
    make = journal(tmp_path).move("stable", other, old=THIRD, new=SECOND)
    History(tmp_path / "channels.json").append([make])
    registry = FakeRegistry(app=SECOND, other=SECOND, lacks=[THIRD])
    with pytest.raises(
        RegistryError, match=r"cannot give .*:other back .*no tag was moved"
    ) as caught:
        rollback(registry, [APP, other], "stable", journal(tmp_path, "rollback"))
    assert "was deleted" in caught.value.hint
    assert registry.written == []


# The history itself.


def test_moves_read_back_as_they_were_written(tmp_path: Path) -> None:
    promoted(tmp_path, FIRST, SECOND)
    history = History(tmp_path / "channels.json")
    assert [move.new for move in history.read()] == [FIRST, SECOND]
    assert history.read()[0] == Move(
        time="2026-12-02T00:00:00.000000Z",
        channel="stable",
        ref=APP.format(),
        old="",
        new=FIRST,
        who="promote",
    )
    assert history.refs("stable") == (APP.format(),)
    assert history.refs("edge") == ()


def test_many_threads_lose_no_move(tmp_path: Path) -> None:
    history = History(tmp_path / "channels.json")
    move = journal(tmp_path).move("stable", APP, old="", new=FIRST)
    threads = [threading.Thread(target=history.append, args=([move],)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history.read()) == 12


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"schema": 2, "moves": {}}', '{"schema": 1, "moves": [{"who": "me"}]}'],
)
def test_a_file_that_is_no_history_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "channels.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProjectError, match=r"channels\.json: wanted the history"):
        History(path).read()
