"""Which image is meant by REF or CELL: any reference, or a cell of the matrix."""

from dataclasses import dataclass
from pathlib import Path

import click

from gpulayers import catalog
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded, Where
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.errors import NothingSelectedError, ProjectError, RemoteError
from gpulayers.lock import file as lock_file
from gpulayers.matrix import select, tags
from gpulayers.matrix.model import Cell
from gpulayers.plan.model import Image
from gpulayers.project import find
from gpulayers.record import ImageRecord
from gpulayers.refs import ImageRef, is_tag

LISTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The image that was meant.

    Shape: ``ref`` is by digest; it has none where only the engine has the image, whose id is then
    ``local``. ``record`` is what a build of this project noted of it.
    """

    ref: ImageRef
    local: str = ""
    record: ImageRecord | None = None

    @property
    def runnable(self) -> str:
        """What ``docker run`` takes."""
        return self.local or self.ref.format()


def image_of(text: str, where: Where, registry: Registry, engine: DockerEngine) -> Named:
    """The image that a text means: ``AXIS=VALUE,…`` and tags of the matrix are cells of it.

    Raises: NothingSelectedError: no cell, or several; RemoteError: no such image anywhere.
    """
    found = project_files.load(where) if "=" in text else None
    if found is None and is_tag(text):
        found = project_of(where)
        if found is not None and text not in tags.tags(found.matrix, found.all_cells).values():
            found = None
    if found is None:
        return of_ref(text, where, registry, engine)
    return of_cell(found, cell_of(found, text), registry, anywhere=not where.registry)


def project_of(where: Where) -> Loaded | None:
    """The project that we are in, or None; one with problems is none that could help."""
    try:
        return project_files.load(where)
    except ProjectError:
        if where.project is not None or where.matrix is not None:
            raise
        return None


def cell_of(found: Loaded, text: str) -> Cell:
    """The one kept cell that fits ``AXIS=GLOB[,AXIS=GLOB…]``, or that has this tag.

    Raises: NothingSelectedError: none does, or several; ProjectError: no such axis.
    """
    if "=" not in text:
        kept = tuple(c for c in found.all_cells if tags.tag(found.matrix, c) == text)
    else:
        cells = set(found.all_cells)
        chosen = select.choose(found.matrix, tuple(text.split(","))).kept
        kept = tuple(cell for cell in chosen if cell in cells)
    if len(kept) == 1:
        return kept[0]
    if not kept:
        msg = f"{text}: wanted a cell of {found.project.matrix_file.name}, found none that fits"
        raise NothingSelectedError(msg, hint="gpulayers list shows the cells and their tags")
    names = [tags.tag(found.matrix, cell) for cell in kept]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    msg = f"{text}: wanted one cell, found {len(kept)}: {', '.join(names[:LISTED])}{more}"
    raise NothingSelectedError(msg, hint="name more axes, separated by commas, or take a tag")


def of_cell(found: Loaded, cell: Cell, registry: Registry, *, anywhere: bool) -> Named:
    """The image of a cell: that of the last build here, else what the registry's tags hold.

    Shape: ``anywhere`` tells that the last build may have gone to another registry.
    Raises: RemoteError: it was never built, or the registry cannot be asked.
    """
    tag, planned = tags.tag(found.matrix, cell), _planned(found, cell)
    record = _noted(found, cell, anywhere=anywhere)
    if record is not None:
        if planned is not None and planned.key != record.key:
            click.echo(f"{tag}: the project has changed since this image was built", err=True)
        return Named(ref=ImageRef.parse(record.ref), record=record)
    for ref in _tagged(found, cell, planned):
        digest = registry.resolve(ref)
        if digest is not None:
            return Named(ref=ref.with_digest(digest))
    msg = f"{tag}: wanted an image in {found.repository().name}, found none"
    raise RemoteError(msg, hint="run: gpulayers build, or name another registry with --registry")


def _planned(found: Loaded, cell: Cell) -> Image | None:
    lock = lock_file.read(found.lock_path)
    if lock is None or project_files.differences(found, lock):
        return None
    return next((i for i in found.plan(lock).images if i.cell == cell), None)


def _noted(found: Loaded, cell: Cell, *, anywhere: bool) -> ImageRecord | None:
    """The last image of the cell that was built here."""
    name = found.repository().name
    for image in catalog.read(found.project.state).images:
        here = image.ref and (anywhere or ImageRef.parse(image.ref).name == name)
        if here and dict(image.cell) == cell.values():
            return image
    return None


def _tagged(found: Loaded, cell: Cell, planned: Image | None) -> tuple[ImageRef, ...]:
    """Where the image may be, the surest first: by key, then by channel from the lowest."""
    names = [f"{planned.tag}-{planned.key12}"] if planned is not None else []
    names += [
        tags.channel_tag(found.matrix, cell, channel) for channel in found.matrix.images.channels
    ]
    return tuple(found.repository().with_tag(name) for name in names)


def of_ref(text: str, where: Where, registry: Registry, engine: DockerEngine) -> Named:
    """The image of a reference: by digest from its registry, else one that the engine has.

    Raises: RemoteError: neither has it.
    """
    ref = ImageRef.parse(text)
    if ref.digest:
        return Named(ref=ref.with_digest(ref.digest), record=_record_of(where, ref.digest))
    trouble = f"{text}: {ref.registry} has no such image"
    hint = "check the name; in a project, gpulayers list shows the tags of its cells"
    try:
        digest = registry.resolve(ref)
    except RemoteError as error:
        digest, trouble, hint = None, str(error), error.hint
    if digest is not None:
        return Named(ref=ref.with_digest(digest), record=_record_of(where, digest))
    local = engine.image_id(text)
    if not local:
        msg = f"{trouble}; the engine has none either"
        raise RemoteError(msg, hint=hint)
    click.echo(f"{trouble}; taking the engine's own image {local[:19]}", err=True)
    return Named(ref=ref, local=local)


def _record_of(where: Where, digest: str) -> ImageRecord | None:
    try:
        project = find(Path.cwd(), project=where.project, matrix=where.matrix)
        images = catalog.read(project.state).images
    except ProjectError:
        return None
    return next((image for image in images if image.digest == digest), None)
