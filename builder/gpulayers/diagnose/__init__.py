"""Which known errors a log tells of, the first cause first."""

from gpulayers.diagnose.logs import Finding, find

__all__ = ["Finding", "find"]
