"""Strict loading: what is refused of damaged facts, and that the packed file is up to date."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import pack_facts
from gpulayers.facts.load import CORE, DATA, PACKAGES, FactsError, load, load_errors, parse

TEXTS: Mapping[str, str] = {
    name: (DATA / f"{name}.toml").read_text(encoding="utf-8")
    for name in (*CORE, *PACKAGES, "errors")
}


def documents(**texts: str) -> Mapping[str, object]:
    return {name: tomllib.loads(texts.get(name, text)) for name, text in TEXTS.items()}


def test_the_packed_file_has_the_rows_of_the_toml_files() -> None:
    found = (DATA / "facts.json").read_text("utf-8")
    assert found == pack_facts.packed(TEXTS), "run python3 tools/pack_facts.py"


def test_every_toml_file_is_loaded() -> None:
    assert {path.stem for path in DATA.glob("*.toml")} == TEXTS.keys()


def test_only_what_was_asked_for_is_loaded() -> None:
    assert set(load(("vllm",)).builds) == {"vllm", "torch"}
    assert set(load(()).builds) == set()
    assert load(("vllm",)) is load(("torch", "vllm"))
    assert set(load(("plan9", "torch")).builds) == {"torch"}


def test_what_is_loaded_is_what_the_toml_files_say() -> None:
    assert load() == parse(documents())
    errors = load_errors()
    assert [error.name for error in errors] == [
        row["name"] for row in tomllib.loads(TEXTS["errors"])["error"]
    ]


SOURCE = next(line for line in TEXTS["drivers"].splitlines() if line.startswith("source = "))
BROKEN = {
    "unknown key": ("kind = ", "knid = ", "drivers/branch/390: knid: unknown key; kind: missing"),
    "wrong type": ("number = 535", 'number = "535"', "number: wanted int, found '535'"),
    "true is no number": ("number = 535", "number = true", "number: wanted int, found True"),
    "no version": ('native = "12.2"', 'native = "12"', "native: wanted MAJOR.MINOR, found '12'"),
    "no pair": ('native = "12.2"', "native = 12.2", "native: wanted MAJOR.MINOR, found 12.2"),
    "no list": ('gpus = ["8.7"]', 'gpus = "8.7"', "gpus: wanted a list, found '8.7'"),
    "twice": ('gpus = ["8.7"]', 'gpus = ["8.7", "8.7"]', "gpus: wanted each value once"),
    "double id": ("drivers/branch/535", "drivers/branch/545", "that no other row has"),
    "foreign id": ("drivers/branch/535", "gpus/branch/535", "wanted an id drivers/TABLE/KEY"),
    "no source": (SOURCE, 'source = ""', "wanted a source, the day it was read"),
    "no note": ('note = "', 'nota = "', "wanted texts, found none: note"),
    "confidence": ('confidence = "secondary"', 'confidence = "sure"', "a known confidence"),
    "unknown table": ("[[jetpack]]", "[[jetpacks]]", "drivers.toml: unknown table jetpacks"),
    "no table": ("[[branch]]", "[branch]", "drivers.toml: unknown table branch"),
    "wrong order": ("number = 535", "number = 999", "branch: wanted the oldest first"),
}


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_damaged_facts_are_refused(old: str, new: str, said: str) -> None:
    text = TEXTS["drivers"]
    assert old in text
    if old == "[[branch]]":
        text = text[: text.index(old, text.index(old) + 1)]  # a single row, else it is no TOML
    with pytest.raises(FactsError, match=re.escape(said)):
        parse(documents(drivers=text.replace(old, new, 1)))


def test_all_damage_is_told_at_once() -> None:
    text = TEXTS["drivers"].replace("kind = ", "knid = ")
    with pytest.raises(FactsError, match=r"^27 problems") as caught:
        parse(documents(drivers=text.replace("[[branch]]", "[[branch]]\nspare = 1")))
    assert "spare: unknown key; kind: missing" in str(caught.value)


@pytest.mark.parametrize("row", ['"drivers": 7', '"drivers": {"branch": [7]}', '"drivers": null'])
def test_a_packed_file_of_another_form_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(f"{{{row}}}", "utf-8")
    with pytest.raises(FactsError, match=r"drivers\.toml: .*wanted"):
        load(path=path)
    path = tmp_path / "list.json"
    path.write_text("[]", "utf-8")
    with pytest.raises(FactsError, match="wanted a table of files, found list"):
        load(path=path)
