"""Images that a command brings to the engine, and lets go of at its end: they are large."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpulayers.engine import process
from gpulayers.engine.docker import DockerEngine
from gpulayers.refs import ImageRef


@contextmanager
def let_go(repository: ImageRef, engine: DockerEngine) -> Iterator[None]:
    """While this is open, images may be pulled; at its end those go that were not there before."""
    before = engine.digests_of(repository.name)
    try:
        yield
    finally:
        with process.tidying():
            for digest in engine.digests_of(repository.name) - before:
                engine.remove_image(repository.with_digest(digest))
