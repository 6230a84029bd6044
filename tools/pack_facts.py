"""Packs the facts' TOML files into the one JSON file that the package reads: TOML is slow to read.

``python3 tools/pack_facts.py`` writes it; with ``--check`` it only says whether it is up to date.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

DATA = Path(__file__).parents[1] / "builder" / "gpulayers" / "facts" / "data"
PACKED = DATA / "facts.json"


def packed(texts: Mapping[str, str]) -> str:
    """The JSON of TOML texts by file name, one line a row, so that a diff shows rows."""
    return "\n".join(_lines(texts)) + "\n"


def _lines(texts: Mapping[str, str]) -> Iterator[str]:
    files = sorted(texts.items())
    yield "{"
    for number, (name, text) in enumerate(files, 1):
        tables = list(tomllib.loads(text).items())
        yield f"{_json(name)}: {{"
        for place, (table, rows) in enumerate(tables, 1):
            yield f"{_json(table)}: ["
            yield ",\n".join(_json(row) for row in rows)
            yield "]" if place == len(tables) else "],"
        yield "}" if number == len(files) else "},"
    yield "}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if it is old")
    check = parser.parse_args().check
    new = packed({path.stem: path.read_text("utf-8") for path in sorted(DATA.glob("*.toml"))})
    if PACKED.exists() and PACKED.read_text("utf-8") == new:
        sys.stdout.write(f"{PACKED.name} is up to date\n")
        return 0
    if check:
        sys.stdout.write(f"{PACKED.name} is older than the TOML files: run tools/pack_facts.py\n")
        return 1
    PACKED.write_text(new, "utf-8")
    sys.stdout.write(f"{PACKED.name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
