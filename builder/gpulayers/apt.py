"""The machine's own apt sources: which mirrors it takes a Debian suite from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ONE_LINE = re.compile(
    r"^deb\s+(\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<rest>.+)$"
)
# What apt takes for no (apt-pkg's StringToBool).
OFF = frozenset({"no", "false", "without", "off", "disable", "0"})
# Archives that are files of this machine are not there inside a build.
LOCAL = ("file:", "copy:", "cdrom:", "mirror+file:")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, slots=True, kw_only=True)
class AptSource:
    """One archive: where, which suites, which components, which keyring signs it (or "").

    Shape: ``signed_by`` is a path, or a whole key in lines that each begin with a blank.
    """

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str

    def format(self) -> str:
        """One paragraph of a deb822 sources file, with a line end."""
        lines = [
            "Types: deb",
            f"URIs: {self.uri}",
            f"Suites: {' '.join(self.suites)}",
            f"Components: {' '.join(self.components)}",
            f"Signed-By: {self.signed_by or KEYRING}",
        ]
        return "\n".join(lines) + "\n"


def parse(text: str, *, one_line: bool) -> tuple[AptSource, ...]:
    """The binary archives of one file under ``/etc/apt``, in its order."""
    return tuple(_one_line(text) if one_line else _deb822(text))


def _one_line(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        match = ONE_LINE.match(line.partition("#")[0].strip())
        if match is None:
            continue
        options = dict(
            part.split("=", 1) for part in (match["options"] or "").split() if "=" in part
        )
        yield AptSource(
            uri=match["uri"],
            suites=(match["suite"],),
            components=tuple(match["rest"].split()),
            signed_by=options.get("signed-by", ""),
        )


def _deb822(text: str) -> Iterator[AptSource]:
    for paragraph in re.split(r"\n\s*\n", text):
        fields = _fields(paragraph)
        is_off = fields.get("enabled", "yes").lower() in OFF
        if "deb" not in fields.get("types", "").split() or is_off:
            continue
        for uri in fields.get("uris", "").split():
            yield AptSource(
                uri=uri,
                suites=tuple(fields.get("suites", "").split()),
                components=tuple(fields.get("components", "").split()),
                signed_by=fields.get("signed-by", ""),
            )


def _fields(paragraph: str) -> dict[str, str]:
    """The fields by name in lower case; lines that go on with one are kept with it."""
    fields: dict[str, str] = {}
    last = ""
    for line in paragraph.splitlines():
        if line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if line.startswith((" ", "\t")):
            fields[last] = f"{fields.get(last, '')}\n{line.rstrip()}"
        elif colon:
            last = name.strip().lower()
            fields[last] = value.strip()
    return fields


def read_machine(root: Path = Path("/")) -> tuple[AptSource, ...]:
    """All archives that the machine's apt is set up with; empty where it has no apt."""
    folder = root / "etc" / "apt"
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]
    sources: list[AptSource] = []
    for file in files:
        if file.suffix in {".list", ".sources"} and file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            sources += parse(text, one_line=file.suffix == ".list")
    return tuple(sources)


def for_suite(sources: Sequence[AptSource], *, own: str, wanted: str) -> tuple[AptSource, ...]:
    """The machine's Debian archives with another suite in the place of its own.

    Shape: keeps the order; what is not for the machine's own suite (other vendors' archives) is
    left out; ``bookworm-updates`` and ``bookworm-security`` go along with ``bookworm``; only
    ``main`` is taken, from archives that a build can reach too.
    """
    found = []
    for source in sources:
        suites = tuple(
            wanted + suite.removeprefix(own)
            for suite in source.suites
            if suite in {own, f"{own}-updates", f"{own}-security"}
        )
        if suites and "main" in source.components and not source.uri.startswith(LOCAL):
            found.append(
                AptSource(
                    uri=source.uri,
                    suites=suites,
                    components=("main",),
                    signed_by=source.signed_by,
                )
            )
    return tuple(dict.fromkeys(found))


def read_codename(root: Path = Path("/")) -> str:
    """The machine's own suite (``bookworm``), or "" where it is not a Debian."""
    file = root / "etc" / "os-release"
    if not file.is_file():
        return ""
    fields = dict(
        line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines() if "=" in line
    )
    is_debian = fields.get("ID", "").strip("\"'") == "debian"
    return fields.get("VERSION_CODENAME", "").strip("\"'") if is_debian else ""


def sources_text(suite: str, root: Path = Path("/")) -> str:
    """A deb822 sources file for a Debian suite from the machine's mirrors, or "" without any."""
    own = read_codename(root)
    found = for_suite(read_machine(root), own=own, wanted=suite) if own else ()
    return "\n".join(source.format() for source in found)
