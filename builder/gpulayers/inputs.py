"""What a build takes from the machine and leaves no trace of: CA, index settings, apt mirrors."""

import configparser
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpulayers import apt

CA_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
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


def prepare(folder: Path, suites: Mapping[str, str], environment: Mapping[str, str]) -> Inputs:
    """Write the machine's settings into a folder.

    Shape: ``suites`` maps an OS (and ``tools``) to the Debian suite of a base that has no apt
    sources of its own, or to "" where it has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pip = read_pip_settings(environment)
    _write(folder / "uv.toml", _uv_settings(environment, pip))
    lines = [f"{key} = {value}\n" for key, value in sorted(pip.items())]
    _write(folder / "pip.conf", "".join(["[global]\n", *lines]) if lines else "")
    for os_name, suite in suites.items():
        _write(folder / f"apt-{os_name}.sources", apt.sources_text(suite) if suite else "")
    return Inputs(folder=folder, ca=_find_ca(environment))


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)  # an index address may hold a login


def _find_ca(environment: Mapping[str, str]) -> Path | None:
    named = [environment[name] for name in CA_VARIABLES if environment.get(name)]
    for file in [*named, *CA_FILES]:
        if Path(file).is_file():
            return Path(file)
    return None


def read_pip_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of pip for indexes that hold inside a build too (files of this machine do not).

    Source: pip's documentation, "Configuration": order of files, then the environment.
    """
    home = Path(environment.get("HOME", "/root"))
    files = [
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        Path(environment.get("XDG_CONFIG_HOME", str(home / ".config"))) / "pip" / "pip.conf",
        Path(environment.get("PIP_CONFIG_FILE", "/dev/null")),
    ]
    settings: dict[str, str] = {}
    for file in files:
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
    kept: dict[str, str] = {key: settings[key] for key in PIP_KEYS if key in settings}
    for key in ("index-url", "extra-index-url"):
        words = [word for word in kept.pop(key, "").split() if not word.startswith("file:")]
        kept.update({key: " ".join(words)} if words else {})
    return kept


def _uv_settings(environment: Mapping[str, str], pip: Mapping[str, str]) -> str:
    home = Path(environment.get("HOME", "/root"))
    config = Path(environment.get("XDG_CONFIG_HOME", str(home / ".config"))) / "uv" / "uv.toml"
    named = environment.get("UV_CONFIG_FILE")
    for file in [*([Path(named)] if named else []), config, Path("/etc/uv/uv.toml")]:
        if file.is_file():
            return _without_file_indexes(file.read_text(encoding="utf-8"))
    default = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
    default = default or pip.get("index-url", "")
    extra = pip.get("extra-index-url", "").split()
    entries = [f"[[index]]\nurl = {json.dumps(url)}\n" for url in extra]
    entries += [f"[[index]]\nurl = {json.dumps(default)}\ndefault = true\n"] if default else []
    return "\n".join(entries)


def _without_file_indexes(text: str) -> str:
    return re.sub(r"(?m)^\s*(find-links|cache-dir)\s*=.*$", "", text)


def suite_of(source: str) -> str:
    """The suite that a base's source has to be told: that of ``bootstrap:SUITE``, else ""."""
    kind, _, suite = source.partition(":")
    return suite if kind == "bootstrap" else ""


def machine_environment() -> Mapping[str, str]:
    """The environment that the settings are read from."""
    return os.environ
