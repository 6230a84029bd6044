"""What there is to pick from: images that were built, or cells that are planned."""

from collections.abc import Iterator, Mapping, Sequence

from gpulayers.matrix import tags
from gpulayers.matrix.model import Cell, Matrix
from gpulayers.pick.choose import Candidate
from gpulayers.plan.sorting import Sorting
from gpulayers.record import ImageRecord
from gpulayers.refs import ImageRef, Platform, RefError
from gpulayers.versions import MajorMinor, Pin, VersionError


def built(
    images: Sequence[ImageRecord], holders: Mapping[str, str], channels: Sequence[str]
) -> tuple[Candidate, ...]:
    """The first image of each cell and platform.

    Shape: ``images`` are the newest first; ``holders`` maps a tag (``HOST/NAME:TAG``) to the digest
    that it points at; ``channels`` run from lowest to highest; pulled is the tag of the highest one
    that points at the image, else its tag with the key.
    """
    found: dict[tuple[Cell, Platform], Candidate] = {}
    for image in images:
        pair = _pair(image)
        if pair is not None and pair not in found:
            found[pair] = _candidate(image, *pair, holders, channels)
    return tuple(found.values())


def _pair(image: ImageRecord) -> tuple[Cell, Platform] | None:
    """The cell and platform of a record; None for one of an older kind that names none."""
    try:
        cell = Cell(
            os=image.cell["os"],
            python=MajorMinor.parse(image.cell["python"]),
            cuda=MajorMinor.parse(image.cell["cuda"]),
            framework=Pin.parse(image.cell["framework"]),
            model=image.cell["model"],
        )
        return cell, Platform.parse(image.platform)
    except (KeyError, VersionError, RefError):
        return None


def _candidate(
    image: ImageRecord,
    cell: Cell,
    platform: Platform,
    holders: Mapping[str, str],
    channels: Sequence[str],
) -> Candidate:
    name = ImageRef.parse(image.ref)
    held = {ImageRef.parse(ref).tag for ref, digest in holders.items() if digest == image.digest}
    wanted = [image.tag if c == channels[-1] else f"{image.tag}-{c}" for c in reversed(channels)]
    wanted.append(f"{image.tag}-{image.key[:12]}")
    tag = next((each for each in wanted if each in held), "")
    refused = "" if tag else "no tag points at it"
    if image.failure is not None:
        refused = f"did not pass: {image.failure.cls}"
    return Candidate(
        cell=cell,
        platform=platform,
        tag=image.tag,
        pull=name.with_tag(tag).format() if tag else "",
        digest=image.digest,
        refused=refused,
    )


def planned(matrix: Matrix, sorting: Sorting) -> tuple[Candidate, ...]:
    """Every kept cell on each of its platforms, built or not."""
    names: Mapping[Cell, str] = tags.tags(matrix, sorting.kept)
    return tuple(_cells(sorting, names))


def _cells(sorting: Sorting, names: Mapping[Cell, str]) -> Iterator[Candidate]:
    for cell, platforms in sorting.kept.items():
        for platform in platforms:
            yield Candidate(cell=cell, platform=platform, tag=names[cell])
