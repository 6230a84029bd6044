"""How Trivy is called: its arguments, its environment, the folder it is given."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import database
from gpulayers.scan.finding import DbState
from gpulayers.secrecy import is_secret

# Settings, not flags: versions that do not know them pass over a variable and die of a flag.
QUIET = {"TRIVY_SKIP_VERSION_CHECK": "true", "TRIVY_DISABLE_TELEMETRY": "true"}
# The secrets in files are another gate's work and cost many times the scan. "/" begins the name of
# every file of a layer, and not that of the image's own settings, whose secrets cost nothing.
_SEARCHED = "allow-rules:\n  - id: files-of-layers\n    path: ^/\n"
# Variables by which Trivy and credential helpers log in to the clouds' registries.
_CLOUDS = ("AWS_", "GOOGLE_", "AZURE_")
# Trivy's own time-out is coarse and counts its waiting; ours ends it first.
_TRIVY_TIMEOUT_EXTRA_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One image to scan, and with what.

    Shape: ``ref`` has a digest; ``state`` keeps what scans share; ``out`` is the file to write.
    """

    ref: ImageRef
    platform: Platform
    state: Path
    db: DbState
    insecure: bool
    out: Path
    timeout_s: float


def clean(program: str, *arguments: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The command line that starts Trivy without variables that would change or leak something.

    Shape: a ``TRIVY_*`` variable of the caller's would filter findings without a word; tokens of a
    CI job are none of Trivy's business, but for those that log in to a cloud's registry.
    """
    unset = [
        word
        for name in sorted(environ)
        if name not in QUIET and (name.startswith("TRIVY_") or _is_secret(name))
        for word in ("-u", name)
    ]
    return ["env", *unset, program, *arguments]


def _is_secret(name: str) -> bool:
    return is_secret(name) and not name.startswith(_CLOUDS)


def furnish(place: Path, request: Request) -> None:
    """Lay out a cache folder of links: this database, the Java index, the shared layer cache."""
    layers, links = request.state / "fanal", place / "cache"
    layers.mkdir(exist_ok=True)
    links.mkdir()
    (links / "fanal").symlink_to(layers.resolve())
    (links / "java-db").symlink_to(database.java_index(request.db, request.state).resolve())
    if request.db.folder is not None:
        (links / "db").symlink_to(request.db.folder)
    (place / "secret.yaml").write_text(_SEARCHED, encoding="utf-8")


def environment(place: Path) -> dict[str, str]:
    """What is added to the environment of a run in that place."""
    return {**QUIET, "TMPDIR": str(place / "tmp")}


def image(request: Request, place: Path, output: Path) -> list[str]:
    """The arguments of one scan.

    Shape: one set of options for all images: the layer cache's key holds them, and another set
    (that without a database is one) analyses every layer again.
    """
    scanners = "vuln,secret" if request.db.status == "ready" else "secret"
    return [
        "image",
        *("--image-src", "remote"),
        *("--platform", request.platform.format()),
        *("--scanners", scanners),
        *("--image-config-scanners", "secret"),
        *("--secret-config", str(place / "secret.yaml")),
        "--list-all-pkgs=true",
        *("--format", "json"),
        *("--output", str(output.absolute())),
        *("--cache-dir", str(place / "cache")),
        *("--timeout", f"{request.timeout_s + _TRIVY_TIMEOUT_EXTRA_S:.0f}s"),
        *("--skip-db-update", "--skip-java-db-update", "--offline-scan", "--no-progress"),
        *(["--insecure"] if request.insecure else []),
        request.ref.with_digest(request.ref.digest).format(),
    ]
