"""The watch over the engine's disk."""

import threading

from gpulayers.engine.space import FULL_BYTES, KEPT_S, THREAD, SpaceWatch


def test_a_disk_that_was_full_a_moment_ago_counts_as_full() -> None:
    now, free = [0.0], [FULL_BYTES - 1]
    watch = SpaceWatch(lambda: free[0], clock=lambda: now[0])
    watch.take()
    now[0], free[0] = 1.0, 10 * FULL_BYTES  # the failed step's files are gone by now
    assert watch.was_full()


def test_a_disk_that_was_full_long_ago_does_not_count() -> None:
    now, free = [0.0], [0]
    watch = SpaceWatch(lambda: free[0], clock=lambda: now[0])
    watch.take()
    now[0], free[0] = KEPT_S + 0.1, FULL_BYTES
    assert not watch.was_full()


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def test_readings_are_taken_while_something_is_watched_and_only_then() -> None:
    read = threading.Event()

    def free() -> int:
        read.set()
        return FULL_BYTES

    watch = SpaceWatch(free, every_s=0.001)
    with watch.watched(), watch.watched():
        (watcher,) = watchers()
        assert read.wait(10)
    watcher.join(10)
    assert watchers() == []
    assert not watch.was_full()


def test_a_disk_that_cannot_be_read_is_not_full() -> None:
    def free() -> int:
        raise FileNotFoundError

    assert not SpaceWatch(free).was_full()
