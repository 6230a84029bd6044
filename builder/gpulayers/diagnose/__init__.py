"""Which known errors a log tells of, the first cause first."""

from gpulayers.diagnose.logs import Finding, find
from gpulayers.diagnose.text import read

__all__ = ["Finding", "find", "read"]
