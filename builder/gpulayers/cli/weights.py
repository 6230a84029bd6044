"""Having the files of fetched models before images are built: each once, for those that lack."""

from collections.abc import Collection

import click

from gpulayers.cli.loaded import Loaded
from gpulayers.engine.registry import Registry
from gpulayers.errors import RemoteError
from gpulayers.lock.model import Lock
from gpulayers.lock.weights import tree
from gpulayers.lock.weights.sources import sources
from gpulayers.lock.weights.store import Store, fetch
from gpulayers.plan import weights
from gpulayers.plan.model import Image


def hand_over(
    found: Loaded, lock: Lock, images: Collection[Image], registry: Registry
) -> dict[str, str]:
    """Put the files of these images' models where the builder takes them from.

    Shape: the models that could not be had, with the reason: their images fail, and no others.
    Raises: ToolError: too little disk, or the client of a source is missing.
    """
    store = Store(folder=found.models)
    ground = found.ground(lock)
    troubles: dict[str, str] = {}
    for name in sorted({image.cell.model for image in images}):
        pair = weights.fetched(ground, name)
        if pair is None or pair[0].place == "reference":
            continue
        try:
            fetch([pair[1]], store, sources(store, registry).carriers, _say)
        except RemoteError as error:
            troubles[name] = f"{error}\n{error.hint}".rstrip()
        else:
            tree.lay(weights.tree_of(ground, *pair), found.models / weights.TREES, store)
    return troubles


def _say(line: str) -> None:
    click.echo(line, err=True)
