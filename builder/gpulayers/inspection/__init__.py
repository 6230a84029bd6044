"""What is inside an image, ours or anyone's, without a container of it."""

from gpulayers.inspection.examine import examine
from gpulayers.inspection.model import CAP_BYTES, Inspected, format_json
from gpulayers.inspection.source import Subject, of_engine, of_registry

__all__ = [
    "CAP_BYTES",
    "Inspected",
    "Subject",
    "examine",
    "format_json",
    "of_engine",
    "of_registry",
]
