"""Names of a model's files: below the model's folder, fit for any file system and any line."""

import re
from collections.abc import Iterable

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
NAME_BYTES_MAX = 200


def checked_name(name: str) -> str:
    """The name, which may have folders in it (``onnx/model.onnx``).

    Raises: ValueError: it leads elsewhere, or is no name that every file system takes.
    """
    parts = name.split("/")
    whole = all(part not in {"", ".", ".."} for part in parts)
    short = all(len(part.encode()) <= NAME_BYTES_MAX for part in parts)
    if not whole or not short or _CONTROL.search(name):
        msg = f"{name!r} is no name of a file below the model's folder"
        raise ValueError(msg)
    return name


def check_together(names: Iterable[str]) -> None:
    """See that files can lie in one folder.

    Raises: ValueError: two have one name, or one is called as the folder of another.
    """
    seen: set[str] = set()
    folders: set[str] = set()
    for name in names:
        if name in seen:
            msg = f"two files are called {name!r}"
            raise ValueError(msg)
        seen.add(name)
        parts = name.split("/")
        folders |= {"/".join(parts[:end]) for end in range(1, len(parts))}
    if both := sorted(seen & folders):
        msg = f"{both[0]!r} is a file and a folder"
        raise ValueError(msg)
