"""Ctrl-C and SIGTERM: the first ends all in order and within seconds, the second one at once."""

import atexit
import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Self

from gpulayers.engine import process

CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# By then whoever interrupted us has waited long enough, whatever still answers slowly.
LIMIT_S = 9.0


class Interrupts:
    """While this is open, a signal is a ``KeyboardInterrupt`` and stops all programs of ours."""

    def __enter__(self) -> Self:
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._first) for each in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an interrupt the second one must still be heard, to the very end.
        if not self.was_interrupted:
            for each, handler in self._before.items():
                signal.signal(each, handler)

    was_interrupted = False

    def _first(self, _signum: int, _frame: FrameType | None) -> None:
        self.was_interrupted = True
        for each in SIGNALS:
            signal.signal(each, self._second)
        process.stop()
        watchdog = threading.Timer(LIMIT_S, leave)
        watchdog.daemon = True
        watchdog.start()
        raise KeyboardInterrupt

    @staticmethod
    def _second(_signum: int, _frame: FrameType | None) -> None:
        leave()


def leave() -> None:
    """End at once, without waiting for any thread; what must be removed at exit is."""
    process.kill_all()
    atexit._run_exitfuncs()  # noqa: SLF001 - os._exit skips them, and they remove passwords
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(CODE)
