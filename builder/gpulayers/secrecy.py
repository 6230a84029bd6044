"""Which names look like those of a secret: one list for what is refused and what is blanked."""

import re

SECRET_NAME = re.compile(r"(?i)(token|secret|passw(or)?d|credential|api[-_]?key|private[-_]?key)")


def is_secret(name: str) -> bool:
    """Whether a variable of that name is taken for a secret."""
    return SECRET_NAME.search(name) is not None
