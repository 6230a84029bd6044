"""The only part that speaks HTTP to registries: who asks what is in ``client``."""

from gpulayers.engine.registry.client import Registry
from gpulayers.engine.registry.model import (
    Descriptor,
    ImageConfig,
    Index,
    Manifest,
    digest_of,
)
from gpulayers.engine.registry.refusal import RegistryError, Trouble
from gpulayers.engine.registry.transport import (
    NoAnswerError,
    Patience,
    Request,
    Response,
    Transport,
)

__all__ = [
    "Descriptor",
    "ImageConfig",
    "Index",
    "Manifest",
    "NoAnswerError",
    "Patience",
    "Registry",
    "RegistryError",
    "Request",
    "Response",
    "Transport",
    "Trouble",
    "digest_of",
]
