"""What is written is true where a program can see it: links, commands, addresses, paths."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulayers import cli
from gpulayers.errors import GpulayersError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            p
            for folder in ("docs", "examples/demo/models", "scans")
            for p in ROOT.glob(f"{folder}/*.md")
        ),
    ]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"(?:`|^\s*|&& |\$ )gpulayers ([a-z]+)", re.MULTILINE)
# Spelled in parts, so that this file holds none of them.
HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("packages", "debian", "org"),
        ("packages", "ubuntu", "com"),
        ("pypi", "nvidia", "com"),
        ("developer", "download", "nvidia", "com"),
        ("download", "pytorch", "org"),
    )
)
# `app` is the home inside images.
HOME = re.compile(r"(?<![\w.}-])/(?:home/(?!app\b)[a-z]\w*|Users/\w+|root)/|[.]pyenv/")
SHORTEST_CHECKOUT = 3


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that a page's headings have on GitHub."""
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(prose(page)))
    return {title.replace(" ", "-") for title in plain}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists():
            yield f"{link}: not there"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_page_of_docs_is_in_its_index() -> None:
    linked = set(LINK.findall(prose(ROOT / "docs" / "README.md")))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages - linked == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_named_exists(page: Path) -> None:
    named = set(COMMAND.findall(page.read_text(encoding="utf-8")))
    assert named - set(cli.COMMANDS) == set()


def test_every_command_is_named_in_the_readme() -> None:
    named = set(COMMAND.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert set(cli.COMMANDS) - named == set()


def test_every_exit_code_is_explained() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    codes = {kind.exit_code for kind in GpulayersError.__subclasses__()} | {0, 1, 2, 130}
    assert explained == codes


@pytest.fixture
def files(own_processes: None) -> list[Path]:  # noqa: ARG001 - git has to be asked
    """The checkout's files by git's account: tracked, or new and not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of files")
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    shown = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in shown.split("\0") if name and (ROOT / name).is_file()]


def lines_with(files: list[Path], pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        hits = (n for n, line in enumerate(text.splitlines(), 1) if pattern.search(line))
        found += [f"{path.relative_to(ROOT)}:{n}" for n in hits]
    return found


def test_no_file_names_a_package_registry_by_its_host(files: list[Path]) -> None:
    """Indexes and mirrors are the machine's own business: its clients know them."""
    hosts = "|".join(re.escape(host) for host in HOSTS)
    assert lines_with(files, re.compile(hosts)) == []


def test_no_file_names_a_path_of_somebodys_machine(files: list[Path]) -> None:
    patterns = [HOME.pattern]
    if len(ROOT.parts) >= SHORTEST_CHECKOUT:
        patterns.append(re.escape(f"{ROOT}/"))
    assert lines_with(files, re.compile("|".join(patterns))) == []
