"""Secrets of the command line: read, hidden, demanded; their values in no message."""

from pathlib import Path

import pytest

from gpulayers import secrecy
from gpulayers.errors import ProjectError
from gpulayers.inputs.given import Given, demand, parse, read

VALUE = "open-sesame-1"


def test_a_secret_comes_from_a_variable_or_a_file() -> None:
    assert parse("id=hf-token,env=HF_TOKEN") == Given(id="hf-token", env="HF_TOKEN")
    assert parse("id=key,src=/run/a") == Given(id="key", file=Path("/run/a"))
    assert parse('id=key,"source=/run/a,b"').source == '"src=/run/a,b"'
    assert parse("id=hf-token,env=HF_TOKEN").source == "env=HF_TOKEN"


@pytest.mark.parametrize(
    "text",
    [
        "",
        VALUE,
        f"hf-token={VALUE}",
        f"id=hf-token,value={VALUE}",
        "id=hf-token",
        "id=hf-token,env=A,src=b",
        f"id=hf-token,env={VALUE}",
        f"id={VALUE}=,env=A",
        "env=A",
    ],
)
def test_what_is_no_secret_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"wanted") as caught:
        parse(text)
    assert VALUE not in str(caught.value)


@pytest.mark.parametrize("name", ["ca", "netrc", "uv-config", "apt-debian12"])
def test_the_machines_own_settings_are_not_given(name: str) -> None:
    with pytest.raises(ValueError, match=f"found {name}"):
        parse(f"id={name},env=A")


def test_what_was_read_is_hidden(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("in-the-file-1\n", encoding="utf-8")
    read([Given(id="a", env="A"), Given(id="b", file=file)], {"A": VALUE})
    assert secrecy.blank(f"{VALUE} and in-the-file-1") == "*** and ***"


@pytest.mark.parametrize(
    ("given", "environment", "wanted"),
    [
        (
            [Given(id="a", env="A")],
            {},
            "secret a: wanted its value in the variable A, found nothing",
        ),
        ([Given(id="a", env="A")], {"A": " \n"}, "found nothing"),
        ([Given(id="a", env="A")], {"A": "abc"}, "found too little"),
        ([Given(id="a", file=Path("/nowhere/at/all"))], {}, "secret a: cannot read the file"),
        ([Given(id="a", env="A"), Given(id="a", env="B")], {"A": VALUE}, "secret a is given twice"),
    ],
)
def test_one_that_cannot_be_used_is_named(
    given: list[Given], environment: dict[str, str], wanted: str
) -> None:
    with pytest.raises(ProjectError, match=wanted):
        read(given, environment)


def test_every_missing_secret_is_named_with_who_asks_for_it() -> None:
    asked = {"weights": ("hf-token", "licence"), "other": ("licence",)}
    with pytest.raises(ProjectError) as caught:
        demand(asked, [Given(id="hf-token", env="A")])
    assert str(caught.value) == (
        "layer other asks for the secret licence; layer weights asks for the secret licence: "
        "not given"
    )
    assert caught.value.hint == "add --secret id=licence,env=LICENCE (or src=FILE)"
    assert caught.value.exit_code == 3


def test_one_that_nobody_asks_for_is_told() -> None:
    given = [Given(id="a", env="A"), Given(id="b", env="B")]
    assert demand({"layer": ("b",)}, given) == ("a",)
