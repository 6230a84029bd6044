"""Moving a channel's tags to the images that may have them, and back to what they had before."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from gpulayers import publish
from gpulayers.engine.registry import RegistryError, Trouble
from gpulayers.errors import RemoteError
from gpulayers.history import History, Move, Who, stamp
from gpulayers.publish import Promotion, TagStore
from gpulayers.record import ImageRecord
from gpulayers.refs import ImageRef

WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where images go: one of the ``channels`` of the matrix, which run from lowest to highest."""

    channel: str
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Where each move is written down before it is made, and by whom it is made."""

    history: History
    who: Who
    now: datetime

    def move(self, channel: str, ref: ImageRef, *, old: str, new: str) -> Move:
        """A move of a channel's tag, as the history spells it."""
        return Move(
            time=stamp(self.now), channel=channel, ref=ref.format(), old=old, new=new, who=self.who
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What became of one image's tags.

    Shape: ``refs`` are all tags that point at ``digest`` now, the content tag first; ``move`` is
    None where the channel's tag pointed there already.
    """

    digest: str
    refs: tuple[str, ...]
    move: Move | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """What a rollback did: the moves, and for each tag that stayed where it is, why."""

    moved: tuple[Move, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    image: ImageRecord
    tags: tuple[str, ...]

    @property
    def moving(self) -> str:
        """The channel's own tag, after the content tag."""
        return self.tags[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    promotion: Promotion
    move: Move | None


def carry(
    registry: TagStore, images: Sequence[ImageRecord], target: Target, journal: Journal
) -> tuple[Carried, ...]:
    """Let the channel's tags point at the images; all of it is checked before the first is moved.

    Raises:
        ProjectError: an unknown channel.
        RemoteError: two images want one tag (nothing was moved); or the registry refused, could not
            be asked or does not hold an image, which names what had moved by then.
    """
    wanted = [_wanted(image, target) for image in images]
    _refuse_doubles(wanted)

    def prepare(each: _Wanted) -> _Prepared:
        return _prepare(registry, each, target.channel, journal)

    with ThreadPoolExecutor(WORKERS) as pool:
        prepared = tuple(pool.map(prepare, wanted))
    _carry_out(registry, prepared, journal.history)
    return tuple(_carried(each) for each in prepared)


def _wanted(image: ImageRecord, target: Target) -> _Wanted:
    tags = publish.tags_for(image.tag, target.channel, image.key, target.channels)
    return _Wanted(image=image, tags=tags)


def _refuse_doubles(wanted: Sequence[_Wanted]) -> None:
    seen: dict[str, ImageRecord] = {}
    for each in wanted:
        image, other = each.image, seen.setdefault(each.moving, each.image)
        if other.digest != image.digest:
            msg = (
                f"{each.moving}: wanted one image, found {other.digest} ({other.platform}) and"
                f" {image.digest} ({image.platform}); no tag was moved"
            )
            raise RemoteError(msg, hint="promote one platform at a time")


def _prepare(registry: TagStore, wanted: _Wanted, channel: str, journal: Journal) -> _Prepared:
    source = ImageRef.parse(wanted.image.ref)
    promotion = publish.prepare(registry, source, wanted.tags)
    if wanted.moving not in promotion.missing:
        return _Prepared(promotion=promotion, move=None)
    moving = source.with_tag(wanted.moving)
    old = registry.resolve(moving) or ""
    move = journal.move(channel, moving, old=old, new=promotion.document.digest)
    return _Prepared(promotion=promotion, move=move)


def _carry_out(registry: TagStore, prepared: Sequence[_Prepared], history: History) -> None:
    for position, each in enumerate(prepared):
        if each.move is not None:
            history.append([each.move])
        try:
            publish.carry_out(registry, each.promotion)
        except RegistryError as error:
            _refuse_rest(error, prepared, position)


def _refuse_rest(error: RegistryError, prepared: Sequence[_Prepared], position: int) -> None:
    left = [each.promotion.tags[-1] for each in prepared[position + 1 :] if each.promotion.missing]
    msg = f"{error}; of {len(prepared)} images, moved before: {position}"
    msg += f"; not tried: {', '.join(left)}" if left else ""
    raise RegistryError(msg, trouble=error.trouble, status=error.status, hint=error.hint) from error


def _carried(prepared: _Prepared) -> Carried:
    promotion = prepared.promotion
    return Carried(
        digest=promotion.document.digest,
        refs=tuple(promotion.source.with_tag(tag).format() for tag in promotion.tags),
        move=prepared.move,
    )


def rollback(
    registry: TagStore, refs: Sequence[ImageRef], channel: str, journal: Journal
) -> RolledBack:
    """Let tags of a channel point at what they had before; checked before the first is moved.

    Shape: a tag stays where nothing earlier is known of it, or where it had nothing before.
    Raises: RemoteError: the registry cannot be asked, or no longer holds what a tag had before
        (nothing was moved); or it refused a tag, which names what had moved by then.
    """
    prepared: list[_Prepared] = []
    kept: dict[str, str] = {}
    for ref in refs:
        found = _earlier(registry, ref, channel, journal)
        if isinstance(found, str):
            kept[ref.format()] = found
        else:
            prepared.append(found)
    _carry_out(registry, prepared, journal.history)
    moves = tuple(each.move for each in prepared if each.move is not None)
    return RolledBack(moved=moves, kept=kept)


def _earlier(registry: TagStore, ref: ImageRef, channel: str, journal: Journal) -> _Prepared | str:
    now = registry.resolve(ref)
    if now is None:
        return "the registry has no such tag"
    made = journal.history.before(ref.format(), now)
    if made is None:
        return f"nothing is known here of what it had before {now}"
    if not made.old:
        return f"it had nothing before {now}"
    promotion = _prepare_back(registry, ref, made)
    return _Prepared(promotion=promotion, move=journal.move(channel, ref, old=now, new=made.old))


def _prepare_back(registry: TagStore, ref: ImageRef, made: Move) -> Promotion:
    try:
        return publish.prepare(registry, ref.with_digest(made.old), [ref.tag])
    except RegistryError as error:
        msg = f"cannot give {ref.format()} back what it had until {made.time}: {error}"
        msg += "; no tag was moved"
        hint = error.hint
        if error.trouble is Trouble.NOT_FOUND:
            hint = "it was deleted from the registry: build it again, or leave it out with --only"
        raise RegistryError(msg, trouble=error.trouble, status=error.status, hint=hint) from error
