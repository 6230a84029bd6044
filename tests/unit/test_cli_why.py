"""`gpulayers why`: words, JSON and exit codes."""

import json

import pytest
from click.testing import CliRunner, Result

from gpulayers.cli import main
from gpulayers.cli.verdicts import WIDTH

L4 = ("--framework", "torch==2.7.1", "--variant", "cu128", "--gpu", "L4")


def why(*words: str) -> Result:
    return CliRunner().invoke(main, ["why", *words])


CODES = {
    "ok": (("--driver", "570.26"), 0),
    "ok-minor-compat": (("--driver", "535.183.01"), 0),
    "unknown": (("--driver", "525"), 12),
    "broken": (("--driver", "570.26", "--python", "3.15"), 11),
}


@pytest.mark.parametrize(("words", "code"), CODES.values(), ids=CODES)
def test_each_verdict_has_its_exit_code(words: tuple[str, ...], code: int) -> None:
    assert why(*L4, *words).exit_code == code


def test_forward_compatibility_has_its_exit_code() -> None:
    words = ("--framework", "torch==2.11.0", "--gpu", "L4", "--driver", "535.183.01")
    assert why(*words).exit_code == 10


def test_json_has_the_keys_of_the_contract() -> None:
    found = json.loads(why(*L4, "--driver", "535.183.01", "--json").stdout)
    assert found["verdict"] == "ok-minor-compat"
    assert found["required_driver"] == {"minimum": "525.60.13", "native": "570.26"}
    assert {"summary", "error", "reasons", "fixes"} < found.keys()
    (reason,) = [each for each in found["reasons"] if each["rule"] == "driver-floor"]
    assert reason["outcome"] == "pass"
    assert {"id", "source", "confidence"} == reason["facts"][0].keys()
    assert found["fixes"][0]["verdict"] == "ok"


def test_words_fit_80_columns_and_name_fact_source_and_fix() -> None:
    said = why(*L4, "--driver", "535.183.01").stdout
    assert [line for line in said.splitlines() if len(line) > WIDTH and "http" not in line] == []
    assert "[cuda/minor-floor/12] doc:" in said
    assert "https://docs.nvidia.com/deploy/cuda-compatibility/" in said
    assert "fix      driver 570.26 -> ok" in said


def test_all_wrong_words_are_told_at_once_as_usage() -> None:
    done = why("--framework", "torch=2", "--gpu", "L400", "--driver", "new", "--sm", "x")
    assert done.exit_code == 2
    for word in ("framework:", "gpu: unknown GPU 'L400'", "driver: unknown driver 'new'", "sm:"):
        assert word in done.stderr
    assert "did you mean L40" in done.stderr


def test_several_packages_may_stand_beside_the_framework() -> None:
    with_pairs = ("--with", "torchvision==0.22.1", "--with", "torchaudio==2.7.1")
    assert why(*L4, "--driver", "570.26", *with_pairs).exit_code == 0
    wrong = ("--with", "torchvision==0.23.0", "--with", "torchaudio==2.7.1")
    assert why(*L4, "--driver", "570.26", *wrong).exit_code == 11
