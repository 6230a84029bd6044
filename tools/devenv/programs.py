"""The folder of programs: links into the unpacked packages."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from devenv import packages
from devenv.layout import Layout
from devenv.state import write_atomically

ENGINE_PACKAGES = ("docker.io", "docker-cli", "docker-buildx", "containerd")
ENGINE_HELPERS = ("runc", "iptables", "tini")
REGISTRY_PACKAGES = ("docker-registry",)
BOOTSTRAP_PACKAGES = ("mmdebstrap", "mount")
# Tried in this order. Go programs of newer suites need glibc 2.34 only, which Debian 12 has.
ENGINE_SUITES = ("forky", "trixie")

# Of each package: the name on PATH and the file inside the package. The iptables names are made by
# update-alternatives on a real installation; docker-init is a link to a package not taken here.
FILES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "docker.io": {"dockerd": "usr/sbin/dockerd", "docker-proxy": "usr/sbin/docker-proxy"},
        "docker-cli": {"docker": "usr/bin/docker"},
        "docker-buildx": {"docker-buildx": "usr/libexec/docker/cli-plugins/docker-buildx"},
        "containerd": {
            name: f"usr/bin/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        },
        "docker-registry": {"docker-registry": "usr/bin/docker-registry"},
        "mmdebstrap": {name: f"usr/bin/{name}" for name in ("mmdebstrap", "mmtarfilter")},
        "mount": {"mount": "bin/mount", "umount": "bin/umount"},
        "runc": {"runc": "usr/sbin/runc"},
        "tini": {"tini": "usr/bin/tini", "docker-init": "usr/bin/tini-static"},
        "iptables": {
            name: f"usr/sbin/{name}"
            for name in ("iptables-nft", "ip6tables-nft", "iptables-nft-save", "ip6tables-nft-save")
        },
    }
)
# Only these may need libraries or modules that were unpacked beside them. Not tini: the engine
# mounts the file itself into containers, where a script has no shell to run it.
WRAPPED = frozenset({"runc", "iptables", "mmdebstrap", "mount"})


def link(layout: Layout, names: Iterable[str]) -> None:
    """Put the programs of these packages into the folder of programs, each whole or not at all."""
    layout.bin.mkdir(parents=True, exist_ok=True)
    for package in names:
        for name, inside in FILES[package].items():
            target = layout.packages / package / inside
            if not target.exists():
                # Newer suites have what was in /bin in /usr/bin.
                target = layout.packages / package / "usr" / inside
            if package in WRAPPED:
                _write_wrapper(layout, layout.bin / name.replace("-nft", ""), target)
            else:
                link_one(layout.bin / name, target)


def unlink(layout: Layout, names: Iterable[str]) -> None:
    """Take the programs of these packages out of the folder again."""
    for package in names:
        for name in FILES[package]:
            (layout.bin / name.replace("-nft", "")).unlink(missing_ok=True)


def link_one(path: Path, target: Path) -> None:
    """Make a relative link, replacing what was there at one stroke."""
    wanted = os.path.relpath(target, path.parent)
    if path.is_symlink() and str(path.readlink()) == wanted:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(wanted)
    partial.replace(path)


def format_wrapper(target: Path, libraries: Iterable[Path], modules: Iterable[Path]) -> str:
    """A shell script that starts a program with the libraries and modules unpacked beside it."""
    lines = ["#!/bin/sh"]
    for name, folders in (("LD_LIBRARY_PATH", libraries), ("PERL5LIB", modules)):
        if joined := ":".join(map(str, folders)):
            lines.append(f'{name}={shlex.quote(joined)}"${{{name}:+:${name}}}"')
            lines.append(f"export {name}")
    lines.append(f'exec {shlex.quote(str(target))} "$@"')
    return "\n".join(lines) + "\n"


def _write_wrapper(layout: Layout, path: Path, target: Path) -> None:
    libraries, modules = packages.library_folders(layout), packages.perl_folders(layout)
    if not libraries and not modules:
        link_one(path, target)
        return
    text = format_wrapper(target, libraries, modules)
    if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == text:
        return
    partial = path.with_name(f".{path.name}.new")
    write_atomically(partial, text)
    partial.chmod(0o755)
    partial.replace(path)
