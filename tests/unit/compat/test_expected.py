"""The judge against the table that was written before it."""

import pytest
from expectations import Expected, read

from gpulayers.compat import query
from gpulayers.compat.judge import judge
from gpulayers.compat.model import Judgement
from gpulayers.facts.load import load

ROWS = read()


def judged(row: Expected) -> Judgement:
    facts = load()
    return judge(query.parse(row.words, facts), facts, with_fixes=False)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_verdict_is_the_expected_one(row: Expected) -> None:
    found = judged(row)
    said = [f"{r.rule}: {r.word}: {r.text}" for r in found.reasons]
    assert found.verdict == row.verdict, said
    assert not row.rule or row.rule in {reason.rule for reason in found.decisive}, said
