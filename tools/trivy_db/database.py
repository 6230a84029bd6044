"""Trivy's vulnerability database, schema 2, from a table of advisories.

Source: github.com/aquasecurity/trivy-db pkg/db and pkg/vulnsrc (read 2026-12-01).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trivy_db import bolt
from trivy_db.bolt import Tree

SCHEMA = 2
Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What a database holds.

    Shape: ``sources`` maps a bucket (``debian 12``) to who speaks there; ``advisories`` maps it to
    package (for Debian the source package), then vulnerability, then advisory; ``details`` maps a
    vulnerability to its title, severities and scores.
    """

    sources: Mapping[str, Row]
    advisories: Mapping[str, Mapping[str, Mapping[str, Row]]]
    details: Mapping[str, Row]


def build(data: Data, folder: Path, *, updated: datetime, valid: timedelta) -> int:
    """Write ``trivy.db`` and ``metadata.json``; the size of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    size = bolt.write(folder / "trivy.db", tree(data))
    _write_metadata(folder, updated=updated, valid=valid)
    return size


def tree(data: Data) -> Tree:
    """The buckets. ``vulnerability`` must be there, even empty: Trivy panics without it."""
    made: Tree = {
        "data-source": {bucket: _json(row) for bucket, row in data.sources.items()},
        "vulnerability": {name: _json(row) for name, row in data.details.items()},
    }
    for bucket, packages in data.advisories.items():
        made[bucket] = {
            package: {name: _json(row) for name, row in rows.items()}
            for package, rows in packages.items()
        }
    return made


def _write_metadata(folder: Path, *, updated: datetime, valid: timedelta) -> None:
    about = {
        "Version": SCHEMA,
        "NextUpdate": _rfc3339(updated + valid),
        "UpdatedAt": _rfc3339(updated),
        "DownloadedAt": _rfc3339(updated),
    }
    (folder / "metadata.json").write_text(json.dumps(about) + "\n", encoding="utf-8")


def _json(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
