from pathlib import Path

import smoke_samples as samples

from gpulayers.smoke import checks, parse
from gpulayers.smoke.model import CallError, Level


def test_results_are_read_and_chatter_is_kept_apart() -> None:
    out = 'warning: slow\n{"check": "os", "ok": true}\n{"no": "result"}\n17\n'
    found = parse.result(samples.check(), samples.finished(out, stderr="oh\n\n"))
    assert [line.check for line in found.lines] == ["os"]
    assert found.said == ("warning: slow", '{"no": "result"}', "17", "oh")


def test_values_that_are_no_text_stay_readable() -> None:
    found = parse.line('{"check": "a", "ok": true, "value": [1, 2], "expected": null}')
    assert found is not None
    assert (found.value, found.expected) == ("[1, 2]", "")


def test_only_the_word_true_is_a_pass() -> None:
    found = parse.line('{"check": "a", "ok": "yes"}')
    assert found is not None
    assert not found.ok


def test_an_error_of_a_call_keeps_its_code() -> None:
    found = parse.result(samples.check(Level.GPU), samples.finished(samples.STAND_IN, code=1))
    wanted = CallError(call="cuModuleLoadData", code=801, name="CUDA_ERROR_NOT_SUPPORTED")
    assert found.broken[0].error == wanted
    assert found.lines[0].stand_in
    assert found.broken[0].format() == ("kernel: cuModuleLoadData: CUDA_ERROR_NOT_SUPPORTED (801)")


def test_a_script_that_said_nothing_has_not_passed() -> None:
    assert not parse.result(samples.check(), samples.finished()).ok


def test_a_script_whose_results_hold_and_that_ends_badly_has_not_passed() -> None:
    out = '{"check": "os", "ok": true}\n'
    assert parse.result(samples.check(), samples.finished(out)).ok
    assert not parse.result(samples.check(), samples.finished(out, code=1)).ok


def test_scripts_keep_the_order_of_their_layers_and_their_level(tmp_path: Path) -> None:
    for name in ("base/cpu_b.py", "base/cpu_a.py", "base/other.py", "cuda/gpu_c.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("pass")
    folders = [(name, tmp_path / name) for name in ("base", "absent", "cuda")]
    found = checks.read(folders)
    assert [(c.format(), c.level) for c in found] == [
        ("base/cpu_a.py", Level.CPU),
        ("base/cpu_b.py", Level.CPU),
        ("cuda/gpu_c.py", Level.GPU),
    ]


def test_a_long_value_is_cut_in_the_sentence_alone() -> None:
    found = parse.line('{"check": "a", "ok": false, "value": "' + "x" * 500 + '"}')
    assert found is not None
    assert len(found.value) == 500
    assert found.format() == f"a: found {'x' * 200}…"
