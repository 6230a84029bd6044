"""The one list of classes: each has one exit code, and stands in the documentation."""

import re
from pathlib import Path

from gpulayers import classes, errors
from gpulayers.build import OF_REGISTRY
from gpulayers.classes import EXIT_CODES, KINDS, word_of
from gpulayers.engine.registry import Trouble
from gpulayers.smoke.classes import Class

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
ROW = re.compile(r"^\| `(?P<name>[a-z-]+)` \| (?P<code>\d+) \| (?P<cause>.+) \| (?P<do>.+) \|$")
# Classes of the smoke ladder that say what a class of builds says too.
SHARED = {"engine-lost"}


def rows() -> dict[str, tuple[int, str, str]]:
    found = map(ROW.match, PAGE.read_text(encoding="utf-8").splitlines())
    return {m["name"]: (int(m["code"]), m["cause"], m["do"]) for m in found if m is not None}


def test_the_page_has_every_class_with_its_code_cause_and_remedy() -> None:
    wanted = {k.name: (k.exit_code, k.cause, k.remedy) for k in KINDS.values()}
    assert rows() == wanted


def test_names_are_kebab_case_and_no_word_of_a_gate() -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in KINDS)
    assert not set(KINDS) & set(EXIT_CODES)


def test_codes_are_those_that_an_error_of_ours_owns() -> None:
    owned = {e.exit_code for e in vars(errors).values() if hasattr(e, "exit_code")}
    assert {kind.exit_code for kind in KINDS.values()} <= owned


def test_a_class_has_one_code_wherever_it_is_seen() -> None:
    smoke = {each.value for each in Class if each.value}
    assert smoke & set(KINDS) == SHARED
    assert word_of("engine-lost", "smoke") == "machine"
    assert word_of("check-failed", "smoke") == "smoke"
    assert word_of("scan-rejected", "scan") == "scan"
    assert word_of("scan-timeout", "scan-not-made") == "scan-not-made"


def test_what_a_registry_refuses_is_told_by_a_class_of_the_list() -> None:
    assert set(OF_REGISTRY.values()) <= set(KINDS)
    assert set(OF_REGISTRY) <= set(Trouble)


def test_only_what_can_pass_by_itself_is_tried_again() -> None:
    again = {kind.name for kind in KINDS.values() if kind.may_pass}
    assert again == {
        "engine-lost",
        "registry-unreachable",
        "rate-limit",
        "auth-expired",
        "push-failed",
    }
    assert all(classes.KINDS[name].word in {"push", "machine"} for name in again)
