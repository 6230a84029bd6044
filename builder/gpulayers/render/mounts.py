"""The secrets that a rendered step reads: which, and that it cannot go on without them."""

import re
from collections.abc import Iterator, Sequence

from gpulayers.secrecy import is_own

MOUNT = re.compile(r"--mount=(?P<words>\S*\btype=secret\b\S*)")
# The one that a machine need not have.
MAY_LACK = "ca"


def faults(text: str, declared: Sequence[str]) -> Iterator[str]:
    """What is wrong with the mounts of secrets in a step's text, in words.

    Source: measured with Docker 28.5.2 (2026-12-01): a step that mounts a secret which was not
    given runs without it, unless the mount says ``required=true``.
    """
    for match in MOUNT.finditer(text):
        words = dict(_pair(word) for word in match["words"].split(","))
        name = words.get("id") or words.get("target", "").rpartition("/")[2]
        if not is_own(name) and name not in declared:
            yield f"it mounts the secret {name!r}, which `secrets` of its layer.toml does not name"
        if name != MAY_LACK and words.get("required", "").lower() not in {"true", "1"}:
            yield f"its mount of the secret {name!r} lacks required=true"


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    # ``required`` alone is true.
    return name, value if equals else "true"


def variable(name: str) -> str:
    """The variable of the bake file that says where a secret comes from."""
    return f"SECRET_{name.upper().replace('-', '_')}"
