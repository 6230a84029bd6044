"""Which layers the registry had before a run, and the bytes of those that the run sent."""

import threading
from dataclasses import dataclass, field

from gpulayers.engine.registry import Manifest


@dataclass(slots=True)
class Sent:
    """Counts for one run; may be used from any thread."""

    _known: set[str] = field(default_factory=set)
    _new: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size_bytes(self) -> int:
        """Compressed bytes of all layers that are new, each counted once."""
        with self._lock:
            return sum(self._new.values())

    def count(self, manifest: Manifest, *, new: bool) -> int:
        """Take note of an image's layers; the bytes of those that nobody had counted before.

        Shape: ``new`` is whether this run made the image.
        """
        return self.count_layers({x.digest: x.size_bytes for x in manifest.layers}, new=new)

    def count_layers(self, sizes: dict[str, int], *, new: bool) -> int:
        """The same for layers by their digests."""
        with self._lock:
            found = {d: s for d, s in sizes.items() if new and d not in self._known}
            self._new.update(found)
            self._known.update(sizes)
        return sum(found.values())
