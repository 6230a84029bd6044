"""How a cell is called in the registry."""

import re
from collections.abc import Iterable, Mapping

from gpulayers.matrix.model import NO_MODEL, Cell, Matrix
from gpulayers.matrix.select import known_values

# Frameworks first: it is what people look for.
_ORDER = ("framework", "cuda", "python", "os", "model")
_FIELD = re.compile(r"\{([^{}]*)\}")
_FIELD_WITH_DASH = re.compile(r"(-?)\{([^{}]*)\}")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_.-]")
KEY_SUFFIX = 13  # a dash and 12 digits of the key


def fields(template: str) -> tuple[str, ...]:
    """The names in braces, in order."""
    return tuple(_FIELD.findall(template))


def is_plain(template: str) -> bool:
    """Whether all that is not in braces can stand in a tag."""
    return _OUTSIDE.search(_FIELD.sub("", template)) is None


def template(matrix: Matrix) -> str:
    """The template of the tags: the matrix' own, or the default one.

    Shape: the default spells the framework, then every axis that has more than one value.
    """
    if matrix.images.tag is not None:
        return matrix.images.tag
    known = known_values(matrix)
    axes = (axis for axis in _ORDER if axis == "framework" or len(known[axis]) > 1)
    return "-".join(f"{{{axis}}}" for axis in axes)


def expand(template: str, cell: Cell) -> str:
    """The tag of a cell: what stands in braces replaced, what a tag cannot hold made ``_``.

    Shape: ``torch2.8.0``, ``cu128``, ``py3.11``, ``debian12``, the model's name; no model is
    nothing, and takes the dash beside it along.
    """
    values = {
        "framework": f"{cell.framework.name}{cell.framework.version}",
        "cuda": f"cu{cell.cuda.compact}",
        "python": f"py{cell.python.format()}",
        "os": cell.os,
        "model": "" if cell.model == NO_MODEL else cell.model,
    }

    def fill(match: re.Match[str]) -> str:
        value = values.get(match[2], match[0])
        return f"{match[1]}{value}" if value else ""

    text = _FIELD_WITH_DASH.sub(fill, template)
    if template.startswith("{model}-") and not values["model"]:
        text = text.removeprefix("-")
    return _OUTSIDE.sub("_", text)


def tag(matrix: Matrix, cell: Cell) -> str:
    """The tag of a cell without channel or key: ``torch2.8.0-cu128-py3.11-debian12-minilm``."""
    return expand(template(matrix), cell)


def tags(matrix: Matrix, cells: Iterable[Cell]) -> Mapping[Cell, str]:
    """The tag of each of these cells, in their order."""
    text = template(matrix)
    return {cell: expand(text, cell) for cell in cells}


def channel_tag(matrix: Matrix, cell: Cell, channel: str) -> str:
    """The tag that a channel moves: plain for the highest channel, else ``TAG-CHANNEL``."""
    plain = tag(matrix, cell)
    return plain if channel == matrix.images.channels[-1] else f"{plain}-{channel}"


def longest_suffix(matrix: Matrix) -> int:
    """How many characters may follow a tag: ``-CHANNEL``, or a dash and the key."""
    return max([KEY_SUFFIX, *(len(channel) + 1 for channel in matrix.images.channels)])
