"""Images put together without a builder, out of steps that the registry holds already."""

from gpulayers.compose.config import Unlike
from gpulayers.compose.parts import Parts
from gpulayers.compose.put import Composed, Composer

__all__ = ["Composed", "Composer", "Parts", "Unlike"]
