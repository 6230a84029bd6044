"""What is said to the person at the terminal, and the one error that ends a command."""

import os
import sys


class DevenvError(Exception):
    """Something this machine cannot do, or a tool that refused.

    Shape: ``str()`` is what went wrong; ``hint`` is the next thing to do and may be empty.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep the message and the hint apart, so that each is printed on a line of its own."""
        super().__init__(message)
        self.hint = hint


def say(name: str, how: str, detail: str = "") -> None:
    """Print one line: the thing, how it came to be there, its version or place."""
    try:
        sys.stdout.write(f"{name:<24} {how:<9} {detail}".rstrip() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody listens any more (`| head`), but what was begun is brought to its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def size(count_bytes: int) -> str:
    """A size for people, in decimal units."""
    amount = float(count_bytes)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
