"""Which class a failed build is of: by where it happened, then by what the builder said of it.

A step's own words count for nothing here: it may print what it likes about networks and disks.
"""

import re

from gpulayers.engine.progress import TIMED_OUT, StepFailure

# With several targets each name gets the target's in front.
_EXPORT = re.compile(r"(\[[^]]*\] )?(exporting to |exporting manifest|pushing )")
_RESOLVE = re.compile(
    r"(\[[^]]*internal\] load metadata for \S+"
    r"|\[context \S+\] (load metadata for )?\S+"
    r"|(\[[^]]*\] )?(FROM \S+|resolve image config for \S+|docker-image://\S+))$"
)
# The end of the builder's sentence about a program; the script stands before it.
_PROGRAM = re.compile(r".*did not complete successfully: (?P<cause>[^\n]*)\s*", re.DOTALL)
_KILLED = re.compile(r"exit code: (137|143)$|signal: (killed|terminated)|cannot allocate memory")
_NO_SPACE = "no space left on device"
_LOST = re.compile(
    r"rpc error: code = Unavailable|transport is closing|error reading from server"
    r"|Cannot connect to the Docker daemon|failed to receive status|failed to list workers"
    r"|closing transport|docker\.sock: connect: "
)
# Addresses and names of images hold any digits and words.
_ADDRESS = re.compile(r"https?://\S+|failed to push \S+|\S*sha256:[0-9a-f]{64}\S*")
_TOO_BIG = re.compile(r"\b413\b|request entity too large", re.IGNORECASE)
_RATE = re.compile(r"\b429\b|too ?many ?requests", re.IGNORECASE)
_LOGIN = re.compile(
    r"\b401\b|unauthorized|authentication required|no basic auth credentials", re.IGNORECASE
)
_DENIED = re.compile(r"\b403\b|\bdenied\b|forbidden|insufficient.scope", re.IGNORECASE)
_GONE = re.compile(
    r"not found\s*$|manifest.unknown|name.unknown|no match for platform|\b404\b", re.IGNORECASE
)
_ASKED = re.compile(r"(request: |from )(head|get)\b", re.IGNORECASE)


def classify(said: StepFailure, *, disk_is_full: bool = False) -> str:
    """The class of a failed build, a name of ``classes.KINDS``.

    Shape: ``disk_is_full`` is what was measured where the engine keeps its data, up to a moment
    before the failure; a step that ran out of space is told from one that says so by that alone.
    """
    if said.step == TIMED_OUT:
        return "build-timeout"
    if not said.step:
        return "engine-lost" if _LOST.search(said.error) else "build-step-failed"
    program = _PROGRAM.fullmatch(said.error)
    if program is not None:
        return _of_program(program["cause"].strip(), said, disk_is_full=disk_is_full)
    at_registry = _EXPORT.match(said.step), _RESOLVE.match(said.step)
    if said.error.rstrip().endswith(_NO_SPACE) and "unexpected status" not in said.error:
        return "disk-full"
    if any(at_registry):
        return _of_registry(said, resolving=at_registry[1] is not None)
    return "engine-lost" if _LOST.search(said.error) else "build-step-failed"


def is_login_refused(said: StepFailure) -> bool:
    """Whether a push was refused for its login (401), wrong or old, not its rights."""
    words = _ADDRESS.sub("", said.error)
    return _EXPORT.match(said.step) is not None and _LOGIN.search(words) is not None


def _of_program(cause: str, said: StepFailure, *, disk_is_full: bool) -> str:
    if _KILLED.search(cause):
        return "build-step-killed"
    if disk_is_full and any(_NO_SPACE in line.lower() for line in said.lines):
        return "disk-full"
    return "build-step-failed"


def _of_registry(said: StepFailure, *, resolving: bool) -> str:
    words = _ADDRESS.sub("", said.error)
    if _TOO_BIG.search(words):
        return "layer-too-big"
    if _RATE.search(words):
        return "rate-limit"
    if _LOGIN.search(words):
        return "auth-expired" if said.uploaded else "auth-denied"
    if _DENIED.search(words):
        return "auth-denied"
    if resolving and _GONE.search(said.error):
        return "base-gone"
    # What only asks comes first: a registry that answers none of it was never there.
    return "registry-unreachable" if resolving or _ASKED.search(said.error) else "push-failed"
