"""What a lock says of a fetched model, from the files that its source names."""

import hashlib
from collections.abc import Sequence

from gpulayers.errors import ProjectError
from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.weights.names import check_together


def locked(name: str, *, source: str, revision: str, files: Sequence[LockedFile]) -> LockedModel:
    """The entry of a model with these files; its digest is over their names and hashes.

    Raises: ProjectError: there are none, or they cannot lie in one folder.
    """
    ordered = tuple(sorted(files))
    try:
        check_together(file.name for file in ordered)
    except ValueError as error:
        msg = f"model {name}: {source} at {revision}: {error}"
        raise ProjectError(msg, hint="choose other files, or have it published anew") from error
    if not ordered:
        msg = f"model {name}: wanted files, found none in {source} at {revision}"
        raise ProjectError(msg, hint="see what it holds, and what `files` of matrix.toml asks for")
    text = "".join(f"{file.name}\0{file.sha256}\n" for file in ordered)
    return LockedModel(
        name=name,
        digest=f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        size_bytes=sum(file.size_bytes for file in ordered),
        source=source,
        revision=revision,
        files=ordered,
    )
