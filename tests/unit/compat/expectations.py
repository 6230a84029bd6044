"""The table of combinations and what is right for each: ``expected/*.toml``."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("expected")
OURS = ("id", "verdict", "rule", "because", "source", "pair")


@dataclass(frozen=True)
class Expected:
    """One row: the words of a query, and what must come out."""

    id: str
    verdict: str
    rule: str
    because: str
    source: str
    pair: str
    words: Mapping[str, str | Sequence[str]]


def read() -> tuple[Expected, ...]:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["row"]:
            words = {key: value for key, value in row.items() if key not in OURS}
            ours = {key: row[key] for key in OURS} | {"id": f"{path.stem}/{row['id']}"}
            found.append(Expected(words=words, **ours))
    return tuple(found)
