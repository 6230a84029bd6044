"""Mounts of secrets in templates: declared, and never to be done without."""

import pytest

from gpulayers.render import mounts

GOOD = "RUN --mount=type=secret,id=hf-token,required=true --mount=type=bind,from=x,target=/y true"


def test_a_declared_secret_that_is_required_is_right() -> None:
    assert list(mounts.faults(GOOD, ["hf-token"])) == []


@pytest.mark.parametrize(
    "text",
    [
        "RUN --mount=type=secret,id=ca,required=false,target=/etc/ca true",
        "RUN --mount=type=secret,id=netrc,required,target=/run/netrc true",
        "RUN --mount=id=apt-debian12,type=secret,required=1 true",
    ],
)
def test_the_machines_own_need_no_declaration(text: str) -> None:
    assert list(mounts.faults(text, [])) == []


def test_one_that_the_layer_does_not_name_is_a_fault() -> None:
    assert "does not name" in next(mounts.faults(GOOD, ["other"]))


@pytest.mark.parametrize(
    "words", ["id=hf-token", "id=hf-token,required=false", "target=/run/secrets/hf-token"]
)
def test_one_that_a_step_could_run_without_is_a_fault(words: str) -> None:
    (fault,) = mounts.faults(f"RUN --mount=type=secret,{words} true", ["hf-token"])
    assert fault == "its mount of the secret 'hf-token' lacks required=true"


def test_the_variable_of_a_secret_is_its_name_in_capitals() -> None:
    assert mounts.variable("hf-token") == "SECRET_HF_TOKEN"
