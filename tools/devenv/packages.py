"""Debian packages unpacked into the checkout; the system stays as it is."""

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from devenv import sources
from devenv.command import ask, need
from devenv.layout import Layout
from devenv.state import write_atomically
from devenv.talk import DevenvError, say

OS_RELEASE = Path("/etc/os-release")
LABEL = ".package"
# Said on every call, so that no setting of the machine can switch apt's signature checks off.
SIGNED_ONLY = (
    "APT::Get::AllowUnauthenticated=false",
    "Acquire::AllowInsecureRepositories=false",
    "Acquire::AllowWeakRepositories=false",
    "Acquire::AllowDowngradeToInsecureRepositories=false",
)
# A second C library on the loader's path would break every program that finds it.
NEVER_UNPACKED = frozenset({"libc6", "libc-bin", "libc6-dev", "base-files", "dpkg", "apt"})


def is_debian() -> bool:
    """Whether this machine's packages are Debian's, and its tools are there."""
    is_there = all(shutil.which(tool) for tool in ("apt-get", "dpkg"))
    return is_there and _os_release().get("ID") == "debian"


def own_suite() -> str:
    """The codename of the machine's own release."""
    return _os_release().get("VERSION_CODENAME", "")


def _os_release() -> dict[str, str]:
    try:
        return sources.parse_os_release(OS_RELEASE.read_text(encoding="utf-8"))
    except OSError:
        return {}


def is_unpacked(layout: Layout, package: str) -> bool:
    """Whether a package is there; it appears whole or not at all."""
    return (layout.packages / package / LABEL).is_file()


def version(layout: Layout, package: str) -> str:
    """The version and suite of an unpacked package."""
    return (layout.packages / package / LABEL).read_text(encoding="utf-8").strip()


def fetch(layout: Layout, suite: str, names: Sequence[str], *, with_needs: bool = False) -> None:
    """Unpack those of the packages that are not there yet, from one suite.

    Shape: ``with_needs`` adds the dependencies that this machine has not installed.
    Raises: DevenvError: the suite or a package cannot be had.
    """
    if all(is_unpacked(layout, name) for name in names):
        return
    state = layout.apt / suite
    options = _prepare(state, suite)
    need(
        ["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "update"],
        doing=f"reading the package lists of {suite}",
        env=_environment(),
    )
    _check_signed(state, suite)
    wanted = [*names, *(_needs(options, names) if with_needs else ())]
    missing = [name for name in dict.fromkeys(wanted) if not is_unpacked(layout, name)]
    # Named packages last: once they are there, what they need is there too.
    missing.sort(key=lambda name: name in names)
    _download(layout, state, options, missing)


def _prepare(state: Path, suite: str) -> list[str]:
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    source = sources.pick(sources.read_all(), own_suite())
    write_atomically(state / "suite.sources", source.for_suite(suite))
    settings = (
        f"Dir::Etc::sourcelist={state / 'suite.sources'}",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::Lists={state / 'lists'}",
        f"Dir::Cache={state / 'cache'}",
        "Acquire::Languages=none",
        "Acquire::Retries=3",
        *SIGNED_ONLY,
    )
    return ["-q", *(word for setting in settings for word in ("-o", setting))]


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}


def _check_signed(state: Path, suite: str) -> None:
    lists = state / "lists"
    if not (any(lists.glob("*_InRelease")) or any(lists.glob("*_Release.gpg"))):
        msg = f"apt kept package lists of {suite} without a signature"
        raise DevenvError(msg, hint="nothing is unpacked from an unsigned source")


def parse_simulation(text: str) -> list[str]:
    """The packages that ``apt-get -s install`` would unpack, in its order."""
    return re.findall(r"^Inst ([^\s:]+)", text, flags=re.MULTILINE)


def _needs(options: Sequence[str], names: Sequence[str]) -> list[str]:
    argv = ["apt-get", *options, "-s", "--no-install-recommends", "install", *names]
    told = need(argv, doing=f"looking at what {', '.join(names)} need", env=_environment())
    return [name for name in parse_simulation(told) if name not in NEVER_UNPACKED]


def _download(layout: Layout, state: Path, options: Sequence[str], names: Iterable[str]) -> None:
    incoming = state / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir(parents=True)
    need(
        ["apt-get", *options, "download", *names],
        doing=f"downloading {', '.join(names)}",
        env=_environment(),
        cwd=incoming,
    )
    for name in names:
        _unpack(layout, next(incoming.glob(f"{name}_*.deb")), name, state.name)
    shutil.rmtree(incoming)


def _unpack(layout: Layout, archive: Path, name: str, suite: str) -> None:
    final, partial = layout.packages / name, layout.packages / f".{name}.{os.getpid()}"
    for folder in (final, *layout.packages.glob(f".{name}.*")):
        shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir(parents=True)
    need(["dpkg", "-x", archive, partial], doing=f"unpacking {archive.name}")
    found = ask(["dpkg-deb", "-f", archive, "Version"]).out.strip()
    (partial / LABEL).write_text(f"{found} ({suite})\n", encoding="utf-8")
    partial.rename(final)
    say(name, "fetched", f"{found} ({suite})")


def library_folders(layout: Layout) -> list[Path]:
    """Folders with shared libraries among the unpacked packages."""
    patterns = ("*/lib/*-linux-gnu*", "*/usr/lib/*-linux-gnu*")
    found = (path for pattern in patterns for path in layout.packages.glob(pattern))
    return sorted(path for path in found if any(path.glob("lib*.so*")))


def perl_folders(layout: Layout) -> list[Path]:
    """Folders with Perl modules among the unpacked packages."""
    patterns = ("*/usr/share/perl5", "*/usr/share/perl/5.*", "*/usr/lib/*/perl/5.*")
    return sorted(p for pattern in patterns for p in layout.packages.glob(pattern))
