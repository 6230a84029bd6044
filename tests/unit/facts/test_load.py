"""The packaged facts, and what is refused of damaged ones."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpulayers.facts.load import CORE, DATA, PACKAGES, FactsError, load, parse
from gpulayers.facts.model import Facts

CONFIDENCES = Path(__file__).with_name("imported.txt")
# Strongest first; a row may only rise above what it was imported with when its source changes.
ORDER = (
    *("wheel", "binary", "registry", "doc", "source-code", "build-script"),
    *("secondary", "inferred", "unverified"),
)
TEXTS: Mapping[str, str] = {
    name: (DATA / f"{name}.toml").read_text(encoding="utf-8") for name in (*CORE, *PACKAGES)
}


def facts() -> Facts:
    return load()


def rows() -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = []
    for text in TEXTS.values():
        for table in tomllib.loads(text).values():
            found += table
    return found


def test_every_row_has_an_id_of_its_own_a_source_and_a_day() -> None:
    ids = [str(row["id"]) for row in rows()]
    assert len(ids) == len(set(ids))
    assert [row["id"] for row in rows() if not row["source"]] == []
    assert [
        row["id"] for row in rows() if not re.fullmatch(r"20\d\d-\d\d-\d\d", str(row["read"]))
    ] == []


def test_confidence_rises_only_with_a_new_source() -> None:
    imported = dict(line.split() for line in CONFIDENCES.read_text("utf-8").splitlines())
    risen = [
        row["id"]
        for row in rows()
        if row["id"] in imported
        and ORDER.index(str(row["confidence"])) < ORDER.index(imported[str(row["id"])])
        and "read out of the wheel (2026-12-01)" not in str(row["source"])
    ]
    assert risen == []


def test_no_row_names_the_host_of_a_package_index() -> None:
    hosts = re.compile(r"pypi\.(org|nvidia)|download\.pytorch|files\.pythonhosted")
    assert [name for name, text in TEXTS.items() if hosts.search(text)] == []


def test_branches_know_more_cuda_the_newer_they_are() -> None:
    branches = list(facts().branches.values())
    assert [b.number for b in branches] == sorted(b.number for b in branches)
    assert [b.native for b in branches] == sorted(b.native for b in branches)
    assert [b.low for b in branches] == sorted(b.low for b in branches)


def test_the_default_of_a_release_is_one_build_a_platform() -> None:
    for package, builds in facts().builds.items():
        defaults = [(b.version, b.platform) for b in builds if b.is_default]
        assert len(defaults) == len(set(defaults)), package


def test_a_build_with_code_in_its_wheel_lists_it() -> None:
    for builds in facts().builds.values():
        for build in builds:
            has_code = bool(build.sms or build.exact_sms or build.ptx)
            assert has_code == (build.code == "wheel" and build.published), build.origin.id


def test_only_what_was_asked_for_is_loaded() -> None:
    assert set(load(("vllm",)).builds) == {"vllm", "torch"}
    assert set(load(()).builds) == set()
    assert load(("vllm",)) is load(("torch", "vllm"))


SOURCE = next(line for line in TEXTS["drivers"].splitlines() if line.startswith("source = "))
BROKEN = {
    "unknown key": ("kind = ", "knid = ", "missing keys: kind; unknown: knid"),
    "wrong type": ("number = 535", 'number = "535"', "number: wanted int, found '535'"),
    "no version": ('native = "12.2"', 'native = "12"', "native: wanted MAJOR.MINOR, found '12'"),
    "double id": ("drivers/branch/535", "drivers/branch/545", "that no other row has"),
    "foreign id": ("drivers/branch/535", "gpus/branch/535", "wanted an id drivers/TABLE/KEY"),
    "no source": (SOURCE, 'source = ""', "wanted a source, the day it was read"),
    "confidence": ('confidence = "secondary"', 'confidence = "sure"', "a known confidence"),
    "unknown table": ("[[jetpack]]", "[[jetpacks]]", "drivers.toml: unknown table jetpacks"),
    "wrong order": ("number = 535", "number = 999", "branch: wanted the oldest first"),
}


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_damaged_facts_are_refused(old: str, new: str, said: str) -> None:
    text = TEXTS["drivers"]
    assert old in text
    with pytest.raises(FactsError, match=re.escape(said)):
        parse({**TEXTS, "drivers": text.replace(old, new, 1)})


def test_all_damage_is_told_at_once() -> None:
    text = TEXTS["drivers"].replace("kind = ", "knid = ")
    with pytest.raises(FactsError, match=r"^27 problems"):
        parse({**TEXTS, "drivers": text.replace("[[branch]]", "[[branch]]\nspare = 1")})
