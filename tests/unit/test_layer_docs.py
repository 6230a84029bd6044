"""docs/layers.md tells what the reader of layer.toml does."""

import re
from pathlib import Path

from gpulayers.layer.document import KEYS, REQUIRED
from gpulayers.layer.model import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "layers.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `\[*(?P<key>[a-z-]+)\]*` \| (?P<type>[^|]+) \|", re.MULTILINE)


def rows() -> dict[str, str]:
    """Keys of the page's first table to their types."""
    table = PAGE[PAGE.index("| key | type |") :]
    return {match["key"]: match["type"] for match in ROW.finditer(table[: table.index("\n\n")])}


def test_every_key_is_on_the_page_and_no_other_one() -> None:
    assert rows().keys() == KEYS.keys()


def test_the_page_says_which_keys_are_required() -> None:
    said = {key for key, kind in rows().items() if re.search(r"required(?! for)", kind)}
    assert said == set(REQUIRED)


def test_every_kind_is_on_the_page() -> None:
    assert [kind for kind in KINDS if f"`{kind}`" not in PAGE] == []
