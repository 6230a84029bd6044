"""How little space the engine's disk had a moment ago: what a failed step gives back at once."""

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# A step that fills the disk ends within some 100 ms, and the builder then takes its files away.
EVERY_S = 0.05
KEPT_S = 5.0
FULL_BYTES = 64 * 10**6
THREAD = "watch-over-space"


def free_bytes(path: Path) -> int:
    """What can still be written there."""
    return shutil.disk_usage(path).free


class SpaceWatch:
    """Readings of the free bytes of a disk, taken while anything is built.

    Shape: ``read`` is asked some 20 times a second, by one thread however many builds there are.
    """

    def __init__(
        self,
        read: Callable[[], int],
        *,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
    ) -> None:
        self._read = read
        self._clock = clock
        self._every_s = every_s
        self._readings: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self._watching = 0
        self._end = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take readings until the end of the block."""
        with self._lock:
            self._watching += 1
            if self._watching == 1:
                self._end = threading.Event()
                thread = threading.Thread(
                    target=self._watch, args=(self._end,), name=THREAD, daemon=True
                )
                thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watching -= 1
                if not self._watching:
                    self._end.set()

    def _watch(self, end: threading.Event) -> None:
        while not end.is_set():
            self.take()
            end.wait(self._every_s)

    def take(self) -> None:
        """Take a reading; a disk that cannot be read at this moment has none."""
        try:
            free = self._read()
        except OSError:
            return
        with self._lock:
            now = self._clock()
            self._readings.append((now, free))
            while self._readings[0][0] < now - KEPT_S:
                self._readings.popleft()

    def was_full(self) -> bool:
        """Whether the disk was full now or a moment ago."""
        self.take()
        with self._lock:
            return any(free < FULL_BYTES for _, free in self._readings)
