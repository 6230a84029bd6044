"""Programs that are run to their end."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devenv.talk import DevenvError

TAIL_LINES = 15
_inherited: set[int] = set()


@contextmanager
def inherited(handle: int) -> Iterator[None]:
    """Let the programs that are run meanwhile keep a handle open too.

    When this process is killed, what it ran goes on for a while: it then still holds the lock, and
    the next call waits for it to end where both would write the same files.
    """
    _inherited.add(handle)
    try:
        yield
    finally:
        _inherited.discard(handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a program left.

    Shape: ``code`` is 127 when it is not there, 124 when it ran past its time.
    """

    code: int
    out: str
    err: str


def ask(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 30,
) -> Outcome:
    """Run a program whose refusal is an answer too."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            env=None if env is None else dict(env),
            cwd=cwd,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            pass_fds=tuple(_inherited),
        )
    except subprocess.TimeoutExpired:
        return Outcome(code=124, out="", err=f"{words[0]} did not end within {timeout_s:g} s")
    except OSError as error:
        return Outcome(code=127, out="", err=str(error))
    return Outcome(code=done.returncode, out=done.stdout, err=done.stderr)


def need(
    argv: Sequence[str | Path],
    *,
    doing: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 1800,
) -> str:
    """The standard output of a program that must succeed.

    Raises: DevenvError: it did not; the message has its last lines.
    """
    outcome = ask(argv, env=env, cwd=cwd, timeout_s=timeout_s)
    if outcome.code:
        said = tail(outcome.err.strip() or outcome.out)
        msg = f"{doing}: {argv[0]} ended with {outcome.code}\n{said}"
        raise DevenvError(msg)
    return outcome.out


def tail(text: str) -> str:
    """The last lines of a text."""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])


def path_without(folder: Path) -> str:
    """This process's PATH without one folder: what the machine itself has."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if part and Path(part) != folder)
