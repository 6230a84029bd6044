"""What pip and uv of this machine are told about indexes, as it holds inside a build too."""

import configparser
import json
import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gpulayers.inputs.logins import Logins

NAME = re.compile(r"[\w.-]+", re.ASCII)
LOCAL = ("file:", "/", "./", "../", "~")
KEYRING = re.compile(r"""^keyring-provider\s*=\s*["'](\w+)["']""", re.MULTILINE)
PIP_KEYS: tuple[str, ...] = ("index-url", "extra-index-url", "trusted-host")


def read_pip_settings(environment: Mapping[str, str], *, root: Path) -> dict[str, str]:
    """Settings of pip for indexes that hold inside a build too (files of this machine do not).

    Source: pip's documentation, "Configuration": order of files, then the environment.
    """
    settings = _pip_globals(environment, root)
    for key in PIP_KEYS:
        value = environment.get(f"PIP_{key.upper().replace('-', '_')}")
        settings.update({key: value} if value else {})
    kept: dict[str, str] = {}
    for key in PIP_KEYS:
        words = [word for word in settings.get(key, "").split() if not _is_local(word)]
        kept.update({key: " ".join(words)} if words else {})
    return kept


def _pip_globals(environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """What pip's files say for all its commands, later ones over earlier ones."""
    settings: dict[str, str] = {}
    for file in _pip_files(environment, root):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section("global"):
            settings.update(dict(parser.items("global")))
    return settings


def wants_keyring(environment: Mapping[str, str], *, root: Path) -> bool:
    """Whether the machine's settings of uv or pip name a keyring to ask for passwords."""
    said = [environment.get("UV_KEYRING_PROVIDER", ""), environment.get("PIP_KEYRING_PROVIDER", "")]
    said.append(_pip_globals(environment, root).get("keyring-provider", ""))
    said += KEYRING.findall(_uv_file(environment, root))
    return any(word not in {"", "disabled"} for word in said)


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


def uv_settings(
    environment: Mapping[str, str], pip: Mapping[str, str], *, root: Path, logins: Logins
) -> str:
    """What uv is told: indexes that its variables name, else its file, else pip's indexes."""
    default = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL") or ""
    named = environment.get("UV_INDEX", "").split()
    named += environment.get("UV_EXTRA_INDEX_URL", "").split()
    if default or named:
        return _indexes(default, named, logins)
    text = _uv_file(environment, root)
    if text:
        return _portable(text, logins)
    return _indexes(pip.get("index-url", ""), pip.get("extra-index-url", "").split(), logins)


def named_index(
    environment: Mapping[str, str], name: str, *, root: Path, logins: Logins
) -> tuple[str, ...]:
    """The addresses of the index that uv's variables call by a name, else those of its file.

    Shape: in their order, none where there is no such index; several are mirrors of one another. A
    name of ours may have slashes (``pytorch/cu126``); for uv they are dashes.
    """
    wanted = plain(name)
    entries = [_named(word) for word in environment.get("UV_INDEX", "").split()]
    found = [url for named, url in entries if named == wanted]
    if not found:
        entries = _indexes_of_file(_uv_file(environment, root))
        found = [url for named, url in entries if named == wanted]
    return tuple(logins.complete(url, wanted) for url in dict.fromkeys(found))


def plain(name: str) -> str:
    """The name of an index as uv takes it, and as it stands in the names of files and secrets."""
    return name.replace("/", "-")


def only_index(url: str) -> str:
    """A uv.toml with one index and no other."""
    return f"[[index]]\nurl = {json.dumps(url)}\ndefault = true\n"


def _indexes_of_file(text: str) -> list[tuple[str, str]]:
    try:
        entries = tomlkit.parse(text).unwrap().get("index", [])
    except TOMLKitError:
        return []
    return [
        (entry["name"], entry["url"])
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("url"), str)
    ]


def _uv_file(environment: Mapping[str, str], root: Path) -> str:
    """The text of the first uv.toml that there is, or ""."""
    own = environment.get("UV_CONFIG_FILE", "")
    files = [Path(own)] if own else []
    files += [_config_home(environment) / "uv" / "uv.toml", root / "etc" / "uv" / "uv.toml"]
    return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), "")


def _indexes(default: str, more: Sequence[str], logins: Logins) -> str:
    # Of mirrors with one name, uv takes one only.
    first = {_named(text)[0] or text: text for text in reversed(more) if not _is_local(text)}
    entries = [_index(text, logins) for text in more if text in first.values()]
    if default and not _is_local(default):
        entries.append(f"{_index(default, logins)}default = true\n")
    return "\n".join(entries)


def _index(text: str, logins: Logins) -> str:
    name, url = _named(text)
    url = logins.complete(url, name)
    lines = ["[[index]]", *([f"name = {json.dumps(name)}"] if name else ())]
    return "\n".join([*lines, f"url = {json.dumps(url)}", ""])


def _named(text: str) -> tuple[str, str]:
    """Name and address of an index as uv's variables have it: an address, or ``NAME=ADDRESS``."""
    name, equals, url = text.partition("=")
    return (name, url) if equals and NAME.fullmatch(name) else ("", text)


def _is_local(text: str) -> bool:
    """Whether an index is a folder of this machine, which a build does not see."""
    return _named(text)[1].startswith(LOCAL)


def _portable(text: str, logins: Logins) -> str:
    """A uv.toml without what is true on this machine only; uv itself tells what is wrong in it."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return text
    for table in (document, document.get("pip", {})):
        # A keyring is asked here, before: there is none inside a build.
        for key in ("find-links", "cache-dir", "keyring-provider"):
            table.pop(key, None)
        _complete(table, logins)
    indexes = document.get("index", [])
    kept = [entry for entry in indexes if not _is_local(str(entry.get("url", "")))]
    # Of mirrors with one name, uv takes one only.
    first = {str(entry.get("name", id(entry))): entry for entry in reversed(kept)}
    kept = [entry for entry in kept if any(entry is one for one in first.values())]
    for entry in kept:
        url, name = str(entry.get("url", "")), str(entry.get("name", ""))
        if (whole := logins.complete(url, name)) != url:
            entry["url"] = whole
    if len(kept) < len(indexes):
        del document["index"]
        document["index"] = kept
    return tomlkit.dumps(document)


def _complete(table: MutableMapping[str, object], logins: Logins) -> None:
    """Put logins into the addresses of uv's older keys."""
    url, more = table.get("index-url"), table.get("extra-index-url")
    if isinstance(url, str):
        table["index-url"] = logins.complete(url)
    if isinstance(more, list):
        table["extra-index-url"] = [logins.complete(str(word)) for word in more]
