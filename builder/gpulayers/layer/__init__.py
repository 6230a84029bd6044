"""The layer library: what each folder of ``layers/`` defines."""

from gpulayers.layer.library import read_library
from gpulayers.layer.model import (
    Identity,
    Kind,
    LayerDef,
    Library,
    Pair,
    TextError,
    fill,
    stack,
)

__all__ = [
    "Identity",
    "Kind",
    "LayerDef",
    "Library",
    "Pair",
    "TextError",
    "fill",
    "read_library",
    "stack",
]
