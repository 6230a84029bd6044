"""What a build takes from the machine and leaves no trace of: CA, index settings, apt mirrors."""

import configparser
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gpulayers import apt

CA_FILES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt")
ROOT = Path("/")
CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
NAME = re.compile(r"[\w.-]+", re.ASCII)
LOCAL = ("file:", "/", "./", "../", "~")
PIP_KEYS: tuple[str, ...] = ("index-url", "extra-index-url", "trusted-host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The files that stand for the machine's settings.

    Shape: ``folder`` holds ``uv.toml``, ``pip.conf`` and ``apt-OS.sources`` for each OS and for the
    tools, any of them possibly empty; ``ca`` is the machine's CA bundle, or None.
    """

    folder: Path
    ca: Path | None

    @property
    def uv_config(self) -> Path:
        """Settings for uv."""
        return self.folder / "uv.toml"

    def apt_sources(self, os_name: str) -> Path:
        """Archives for an OS; empty where the base's own are to be used."""
        return self.folder / f"apt-{os_name}.sources"


def prepare(
    folder: Path,
    suites: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    root: Path = ROOT,
) -> Inputs:
    """Write the machine's settings into a folder.

    Shape: ``suites`` maps an OS (and ``tools``) to the Debian suite of a base that has no apt
    sources of its own, or to "" where it has; ``root`` is where the machine's files are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pip = read_pip_settings(environment, root=root)
    _write(folder / "uv.toml", _uv_settings(environment, pip, root))
    lines = [f"{key} = {value}\n" for key, value in sorted(pip.items())]
    _write(folder / "pip.conf", "".join(["[global]\n", *lines]) if lines else "")
    for os_name, suite in suites.items():
        _write(folder / f"apt-{os_name}.sources", apt.sources_text(suite, root) if suite else "")
    return Inputs(folder=folder, ca=_find_ca(environment, root))


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return  # an untouched file keeps BuildKit from reading it again
    path.touch(mode=0o600)  # an index address may hold a login
    path.chmod(0o600)
    path.write_text(text, encoding="utf-8")


def _find_ca(environment: Mapping[str, str], root: Path) -> Path | None:
    named = [Path(environment[name]) for name in CA_VARIABLES if environment.get(name)]
    files = [*named, *(root / name for name in CA_FILES)]
    return next((file for file in files if file.is_file()), None)


def read_pip_settings(environment: Mapping[str, str], *, root: Path = ROOT) -> dict[str, str]:
    """Settings of pip for indexes that hold inside a build too (files of this machine do not).

    Source: pip's documentation, "Configuration": order of files, then the environment.
    """
    settings: dict[str, str] = {}
    for file in _pip_files(environment, root):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section("global"):
            settings.update(dict(parser.items("global")))
    for key in PIP_KEYS:
        value = environment.get(f"PIP_{key.upper().replace('-', '_')}")
        settings.update({key: value} if value else {})
    kept: dict[str, str] = {}
    for key in PIP_KEYS:
        words = [word for word in settings.get(key, "").split() if not _is_local(word)]
        kept.update({key: " ".join(words)} if words else {})
    return kept


def _pip_files(environment: Mapping[str, str], root: Path) -> tuple[Path, ...]:
    named = environment.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return ()  # pip's own word for "no files at all"
    user = _home(environment)
    return (
        root / "etc" / "pip.conf",
        user / ".pip" / "pip.conf",
        _config_home(environment) / "pip" / "pip.conf",
        *((Path(named),) if named else ()),
    )


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "/root")


def _config_home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config")


def _uv_settings(environment: Mapping[str, str], pip: Mapping[str, str], root: Path) -> str:
    """What uv is told: indexes that its variables name, else its file, else pip's indexes."""
    default = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL") or ""
    named = environment.get("UV_INDEX", "").split()
    named += environment.get("UV_EXTRA_INDEX_URL", "").split()
    if default or named:
        return _indexes(default, named)
    own = environment.get("UV_CONFIG_FILE", "")
    files = [Path(own)] if own else []
    files += [_config_home(environment) / "uv" / "uv.toml", root / "etc" / "uv" / "uv.toml"]
    for file in files:
        if file.is_file():
            return _portable(file.read_text(encoding="utf-8"))
    return _indexes(pip.get("index-url", ""), pip.get("extra-index-url", "").split())


def _indexes(default: str, more: Sequence[str]) -> str:
    entries = [_index(text) for text in more if not _is_local(text)]
    entries += [f"{_index(default)}default = true\n"] if default and not _is_local(default) else []
    return "\n".join(entries)


def _index(text: str) -> str:
    name, url = _named(text)
    lines = ["[[index]]", *([f"name = {json.dumps(name)}"] if name else ())]
    return "\n".join([*lines, f"url = {json.dumps(url)}", ""])


def _named(text: str) -> tuple[str, str]:
    """Name and address of an index as uv's variables have it: an address, or ``NAME=ADDRESS``."""
    name, equals, url = text.partition("=")
    return (name, url) if equals and NAME.fullmatch(name) else ("", text)


def _is_local(text: str) -> bool:
    """Whether an index is a folder of this machine, which a build does not see."""
    return _named(text)[1].startswith(LOCAL)


def _portable(text: str) -> str:
    """A uv.toml without what is true on this machine only; uv itself tells what is wrong in it."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return text
    for table in (document, document.get("pip", {})):
        for key in ("find-links", "cache-dir"):
            table.pop(key, None)
    indexes = document.get("index", [])
    kept = [entry for entry in indexes if not _is_local(str(entry.get("url", "")))]
    if len(kept) < len(indexes):
        del document["index"]
        document["index"] = kept
    return tomlkit.dumps(document)


def suite_of(source: str) -> str:
    """The suite that a base's source has to be told: that of ``bootstrap:SUITE``, else ""."""
    kind, _, suite = source.partition(":")
    return suite if kind == "bootstrap" else ""


def machine_environment() -> Mapping[str, str]:
    """The environment that the settings are read from."""
    return os.environ
