"""The machine's own apt sources: which mirror and which key it trusts."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devenv.talk import DevenvError

ONE_LINE = re.compile(r"^deb(?:\s+\[(?P<options>[^\]]*)\])?\s+(?P<rest>\S.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One mirror with its suites.

    Shape: ``signed_by`` is the value as it stood (a path, a fingerprint or a whole key block),
    empty where apt's general key ring counts. An option such as ``trusted=yes`` is never kept.
    """

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str

    def for_suite(self, suite: str) -> str:
        """The text of a ``.sources`` file for one suite of this mirror."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {suite}"]
        lines.append(f"Components: {' '.join(self.components)}")
        if self.signed_by:
            lines.append(f"Signed-By: {self.signed_by}")
        return "\n".join(lines) + "\n"


def parse_os_release(text: str) -> dict[str, str]:
    """The pairs of /etc/os-release without their quotes."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value.strip().strip("\"'") for key, sign, value in pairs if sign}


def parse_deb822(text: str) -> list[Source]:
    """The enabled binary sources of a ``.sources`` file, in its order."""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    stanzas = [_fields(stanza) for stanza in re.split(r"\n[ \t]*\n", kept)]
    return [source for fields in stanzas for source in _of_fields(fields)]


def _fields(stanza: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line[:1] in " \t" and name:
            fields[name] += "\n" + line
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _of_fields(fields: Mapping[str, str]) -> list[Source]:
    is_on = fields.get("enabled", "yes").lower() not in {"no", "false", "0", "off", "without"}
    if not is_on or "deb" not in fields.get("types", "").split():
        return []
    return [
        Source(
            uri=uri,
            suites=tuple(fields.get("suites", "").split()),
            components=tuple(fields.get("components", "").split()),
            signed_by=fields.get("signed-by", ""),
        )
        for uri in fields.get("uris", "").split()
    ]


def parse_one_line(text: str) -> list[Source]:
    """The binary sources of a ``.list`` file, in its order."""
    found = (ONE_LINE.match(line.partition("#")[0].strip()) for line in text.splitlines())
    return [source for match in found if match for source in _of_words(match)]


def _of_words(match: re.Match[str]) -> list[Source]:
    words = match["rest"].split()
    if len(words) < 2:  # noqa: PLR2004
        return []
    options = {
        key: value for key, _, value in (w.partition("=") for w in (match["options"] or "").split())
    }
    return [
        Source(
            uri=words[0],
            suites=(words[1],),
            components=tuple(words[2:]),
            signed_by=options.get("signed-by", ""),
        )
    ]


def pick(sources: Iterable[Source], codename: str) -> Source:
    """The source that carries the machine's own suite.

    Raises: DevenvError: none does.
    """
    for source in sources:
        if codename in source.suites and "main" in source.components:
            return source
    msg = f"no apt source of this machine carries the suite {codename!r} with the component main"
    raise DevenvError(msg, hint="add it to /etc/apt/sources.list.d, or install Docker with buildx")


def read_all(etc: Path = Path("/etc/apt")) -> list[Source]:
    """Every source that this machine's apt would read."""
    lists = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
    found = [s for path in lists if path.is_file() for s in parse_one_line(_text(path))]
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        found += parse_deb822(_text(path))
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
