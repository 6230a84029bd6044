"""docs/commands.md has every command with every option, and no option that is not there."""

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from gpulayers import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
TEXT = PAGE.read_text(encoding="utf-8")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SHARED = {"--project", "--matrix", "--only", "--registry", "--json", "--no-wait"}
LIKE_RUN = {"shell"}


def section(name: str) -> str:
    found = re.search(rf"^### gpulayers {name}\n(.*?)(?=^##)", TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/commands.md has no part about {name}"
    return FENCE.sub("", found[1])


def options(name: str) -> set[str]:
    command = getattr(import_module(cli.COMMANDS[name]), f"{name}_command")
    assert isinstance(command, click.Command)
    found = (option for each in command.params for option in (*each.opts, *each.secondary_opts))
    return {option for option in found if option.startswith("--")}


@pytest.mark.parametrize("name", sorted(set(cli.COMMANDS) - LIKE_RUN))
def test_every_option_is_in_its_commands_part(name: str) -> None:
    shared = SHARED if name != "init" else set()
    assert options(name) - shared - set(OPTION.findall(section(name))) == set()


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_no_part_names_an_option_that_is_not_there(name: str) -> None:
    everywhere = {option for each in cli.COMMANDS for option in options(each)}
    assert set(OPTION.findall(section(name))) - everywhere == set()


def test_a_shell_has_the_options_of_run() -> None:
    assert options("run") - options("shell") == {"--entrypoint"}
    assert "options of `run`" in section("shell")
