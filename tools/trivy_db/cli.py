"""The commands: write the sample database, show one, pack one for a registry."""

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trivy_db import artifact, database, sample
from trivy_db.bolt import Tree
from trivy_db.reader import read


def main(argv: list[str]) -> int:
    """Run one command; 0, or argparse's 2."""
    parser = argparse.ArgumentParser(prog="trivy_db", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="write OUT/trivy.db and metadata.json")
    build.add_argument("out", type=Path)
    build.add_argument("--valid-days", type=float, default=3650.0, help="until it is due again")
    build.add_argument("--age-days", type=float, default=0.0, help="how old it says it is")
    dump = commands.add_parser("dump", help="a bbolt file, or one bucket of it, as JSON")
    dump.add_argument("file", type=Path)
    dump.add_argument("bucket", nargs="*")
    pack = commands.add_parser("pack", help="the layer of an OCI database artifact")
    pack.add_argument("folder", type=Path)
    pack.add_argument("out", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.command == "build":
        _build(arguments.out, arguments.valid_days, arguments.age_days)
    elif arguments.command == "dump":
        _dump(arguments.file, arguments.bucket)
    else:
        artifact.pack(arguments.folder, arguments.out)
    return 0


def _build(out: Path, valid_days: float, age_days: float) -> None:
    updated = datetime.now(UTC) - timedelta(days=age_days)
    valid = timedelta(days=valid_days)
    size = database.build(sample.DATA, out, updated=updated, valid=valid)
    print(f"{out / 'trivy.db'}: {size} bytes, {len(sample.DATA.details)} vulnerabilities")


def _dump(file: Path, path: list[str]) -> None:
    value: Tree | bytes = read(file)
    for name in path:
        value = value[name] if isinstance(value, dict) else b""
    json.dump(_plain(value), sys.stdout, indent=1, ensure_ascii=False)
    print()


def _plain(value: Tree | bytes) -> object:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    try:
        plain: object = json.loads(value)
    except ValueError:
        return value.decode("utf-8", "replace")
    return plain
