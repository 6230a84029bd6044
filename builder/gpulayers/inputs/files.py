"""The machine's settings as files that steps of a build may read, and never keep."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpulayers import apt, documents, statelock
from gpulayers.errors import ProjectError
from gpulayers.inputs import answers
from gpulayers.inputs.answers import Ask
from gpulayers.inputs.logins import (
    Keyring,
    Logins,
    apt_auth,
    ask_keyring,
    netrc,
    proxies,
    without_logins,
)
from gpulayers.inputs.settings import (
    named_index,
    only_index,
    plain,
    read_pip_settings,
    uv_settings,
    wants_keyring,
)

CA_FILES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt")
ROOT = Path("/")
CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Nothing but logins: empty in the folder that stays.
NETRC, APT_AUTH = "netrc", "apt-auth.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The files that stand for the machine's settings.

    Shape: ``folder`` holds ``uv.toml``, ``pip.conf``, ``netrc``, ``apt-auth.conf`` and
    ``apt-OS.sources`` for each OS and for the tools, any of them possibly empty, and
    ``uv-NAME.toml`` for each index by a name; ``indexes`` maps such names to their addresses;
    ``ca`` is the machine's CA bundle, or None. Where there are logins, ``folder`` goes away with
    this process, and ``kept`` has the same files without them; else ``kept`` is None. ``proxies``
    maps upper-case names to addresses.
    """

    folder: Path
    ca: Path | None
    kept: Path | None = None
    proxies: Mapping[str, str] = field(default_factory=dict)
    indexes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def by_hand(self) -> Path:
        """The folder for commands that people run later."""
        return self.kept or self.folder

    @property
    def uv_config(self) -> Path:
        """Settings for uv."""
        return self.folder / "uv.toml"

    @property
    def apt_auth(self) -> Path:
        """Logins for OS archives; often empty."""
        return self.folder / APT_AUTH

    def apt_sources(self, os_name: str) -> Path:
        """Archives for an OS; empty where the base's own are to be used."""
        return self.folder / f"apt-{os_name}.sources"


def _silent(_: str) -> None:
    """Say nothing."""


def prepare(  # noqa: PLR0913 - where the settings come from, and who hears of them
    folder: Path,
    suites: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    indexes: Collection[str] = (),
    root: Path = ROOT,
    keyring: Keyring = ask_keyring,
    ask: Ask | None = None,
    say: Callable[[str], None] = _silent,
) -> Inputs:
    """Write the machine's settings into a folder; those with logins into one that goes away.

    Shape: ``suites`` maps an OS (and ``tools``) to the Debian suite of a base that has no apt
    sources of its own, or to "" where it has; ``indexes`` are names of indexes that are needed
    beside the plain one; ``root`` is where the machine's files are; ``ask`` is how an index with
    several addresses is asked, None for over the network; ``say`` hears of those passed over.
    Raises: ProjectError: uv's settings name no such index; RemoteError: no address of one answers.
    """
    asked = keyring if wants_keyring(environment, root=root) else None
    logins = Logins(environment=environment, keyring=asked)
    ca = _find_ca(environment, root)
    mirrors = _named(indexes, environment, root, logins)
    named = answers.first(mirrors, ask or answers.asking(ca), say)
    texts = _texts(suites, environment, root, logins)
    texts |= {index_file(name): only_index(url) for name, url in named.items()}
    bare = {
        name: "" if name in {NETRC, APT_AUTH} else without_logins(text)
        for name, text in texts.items()
    }
    made = Inputs(
        folder=folder,
        ca=ca,
        proxies=proxies(environment),
        indexes=named,
    )
    _write(folder, bare)
    if bare == texts:
        return made
    private = _passing_folder()
    _write(private, texts)
    return replace(made, folder=private, kept=folder)


def index_file(name: str) -> str:
    """The file with uv's settings for an index by its name."""
    return f"uv-{plain(name)}.toml"


def _named(
    names: Collection[str], environment: Mapping[str, str], root: Path, logins: Logins
) -> dict[str, tuple[str, ...]]:
    found = {
        name: named_index(environment, name, root=root, logins=logins) for name in sorted(names)
    }
    missing = [name for name, addresses in found.items() if not addresses]
    if missing:
        entries = ", ".join(f'an index named "{plain(name)}"' for name in missing)
        msg = f"wanted in uv's settings of this machine {entries} (for {', '.join(missing)}), "
        msg += "found none"
        hint = "write [[index]] with that name and its url into uv.toml, or UV_INDEX=NAME=URL"
        raise ProjectError(msg, hint=hint)
    return found


def _texts(
    suites: Mapping[str, str], environment: Mapping[str, str], root: Path, logins: Logins
) -> dict[str, str]:
    """File name to content."""
    pip = read_pip_settings(environment, root=root)
    lines = [
        f"{key} = {' '.join(logins.complete(word) for word in value.split())}\n"
        for key, value in sorted(pip.items())
    ]
    sources = {
        f"apt-{os_name}.sources": apt.sources_text(suite, root) if suite else ""
        for os_name, suite in suites.items()
    }
    for word in " ".join(sources.values()).split():
        logins.complete(word)  # hides the passwords of mirrors
    return {
        "uv.toml": uv_settings(environment, pip, root=root, logins=logins),
        "pip.conf": "".join(["[global]\n", *lines]) if lines else "",
        NETRC: netrc(environment),
        APT_AUTH: apt_auth(root),
        **sources,
    }


def _passing_folder() -> Path:
    """A folder of our own that is removed when this process ends."""
    made = tempfile.mkdtemp(prefix=statelock.scratch_prefix())
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue  # an untouched file keeps BuildKit from reading it again
        documents.write(path, text, mode=0o600)  # an index's address is nobody else's business


def _find_ca(environment: Mapping[str, str], root: Path) -> Path | None:
    named = [Path(environment[name]) for name in CA_VARIABLES if environment.get(name)]
    files = [*named, *(root / name for name in CA_FILES)]
    return next((file for file in files if file.is_file()), None)


def suite_of(source: str) -> str:
    """The suite that a base's source has to be told: that of ``bootstrap:SUITE``, else ""."""
    kind, _, suite = source.partition(":")
    return suite if kind == "bootstrap" else ""


def machine_environment() -> Mapping[str, str]:
    """The environment that the settings are read from."""
    return os.environ
