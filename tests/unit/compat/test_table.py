"""The table of expectations is whole: enough of it, each rule on both sides of its boundary."""

from collections import defaultdict

from expectations import read

from gpulayers.compat.model import ORDER

ROWS = read()
WORDS = {
    *("framework", "variant", "cuda", "gpu", "driver", "python", "os", "platform", "with"),
    *("base", "toolkit-mode", "sm", "ptx"),
}


def test_there_are_enough_rows_each_with_an_id_a_reason_and_a_source() -> None:
    assert len(ROWS) >= 80
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert [row.id for row in ROWS if not row.because or not row.source] == []


def test_every_row_is_a_query_with_a_verdict() -> None:
    for row in ROWS:
        assert row.verdict in ORDER, row.id
        assert row.words.keys() <= WORDS, row.id
        assert {"framework", "gpu", "driver"} <= row.words.keys(), row.id
        assert bool(row.rule) == (row.verdict != "ok"), row.id


def test_the_two_sides_of_a_boundary_differ() -> None:
    pairs = defaultdict(list)
    for row in ROWS:
        if row.pair:
            pairs[row.pair].append(row.verdict)
    assert len(pairs) >= 20
    assert [name for name, verdicts in pairs.items() if len(set(verdicts)) != 2] == []


def test_every_verdict_and_nearly_every_rule_decides_somewhere() -> None:
    assert {row.verdict for row in ROWS} == set(ORDER)
    assert len({row.rule for row in ROWS}) >= 12
