"""`gpulayers pick`: the best image for a machine, and why the others are not."""

import json
import sys
from pathlib import Path

import click
from packaging.requirements import InvalidRequirement, Requirement

from gpulayers import catalog, pick
from gpulayers.cli import loaded as project_files
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.options import known_host, where, where_options
from gpulayers.cli.verdicts import wrapped
from gpulayers.pick.choose import Answer, Choice

NOTHING = 4


@click.command("pick", short_help="The best image for a machine, and why the others are not.")
@where_options
@click.option("--driver", default="", metavar="VERSION", help="535.183.01, 535 or jetpack6.")
@click.option("--gpu", "gpus", multiple=True, metavar="MODEL|X.Y", help="Repeatable: all must do.")
@click.option("--host", is_flag=True, help="Read driver and GPUs of this machine.")
@click.option("--framework", default="", metavar="SPEC", help="torch, or torch>=2.7,<2.9.")
@click.option("--python", default="", metavar="X.Y", help="3.12.")
@click.option("--cuda", default="", metavar="X.Y", help="12.8.")
@click.option("--model", default="", metavar="NAME", help="A model of the matrix.")
@click.option("--os", "os_name", default="", metavar="NAME", help="debian12.")
@click.option("--planned", is_flag=True, help="From the cells of the matrix, built or not.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def pick_command(
    project: Path | None,
    matrix: str | None,
    only: tuple[str, ...],
    registry: str,
    *,
    driver: str,
    gpus: tuple[str, ...],
    host: bool,
    framework: str,
    python: str,
    cuda: str,
    model: str,
    os_name: str,
    planned: bool,
    as_json: bool,
) -> None:
    """Name the image that runs best on a driver and GPU, of those that were really built.

    It judges as `gpulayers why` does. Exit code 4 when nothing runs there.
    """
    found = project_files.load(where(project, matrix, only, registry))
    machine = _machine(found, driver, gpus, host=host)
    wish = pick.Wish(
        framework=_requirement(framework), python=python, model=model, os=os_name, cuda=cuda
    )
    offers = _offers(found, planned=planned)
    choice = pick.choose(found.judging, offers, machine, wish)
    if as_json:
        click.echo(json.dumps(_document(choice, machine), indent=2))
    else:
        _say(choice, machine, empty=_empty(planned=planned) if not offers else "")
    sys.exit(0 if choice.best is not None else NOTHING)


def _machine(found: Loaded, driver: str, gpus: tuple[str, ...], *, host: bool) -> pick.Host:
    facts = found.judging.facts
    if host:
        if driver or gpus:
            msg = "--host reads driver and GPUs of this machine: leave out --driver and --gpu"
            raise click.UsageError(msg)
        return pick.read_host(facts)
    if not driver or not gpus:
        msg = "wanted --driver and --gpu, or --host"
        raise click.UsageError(msg)
    known_host(facts, driver, gpus)
    return pick.Host(driver=driver, gpus=gpus)


def _requirement(text: str) -> Requirement | None:
    if not text:
        return None
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        msg = f"--framework {text}: wanted a name with or without versions, as torch>=2.7,<2.9"
        raise click.UsageError(msg) from error


def _offers(found: Loaded, *, planned: bool) -> tuple[pick.Candidate, ...]:
    if planned:
        return pick.planned(found.matrix, found.sorting)
    state = catalog.read(found.project.state)
    offers = pick.built(state.images, state.holders, found.matrix.images.channels)
    if not found.only:
        return offers
    return tuple(each for each in offers if each.cell in found.sorting.kept)


def _empty(*, planned: bool) -> str:
    if planned:
        return "no cell is kept"
    return "no image was built here yet: gpulayers build, or --planned for the matrix"


def _say(choice: Choice, machine: pick.Host, *, empty: str) -> None:
    where_ = f"{', '.join(machine.gpus)} with driver {machine.driver}"
    if choice.best is None:
        click.echo(f"nothing runs on {where_}{f': {empty}' if empty else ''}", err=True)
    else:
        best = choice.best
        click.echo(f"pick  {best.candidate.tag}  ({best.candidate.platform.format()})")
        for line in wrapped("why   ", f"on {where_}: {best.line}"):
            click.echo(line)
        for name, command in _commands(best).items():
            click.echo(f"{name:5} {command}")
    for answer in choice.others:
        click.echo(f"not   {answer.candidate.tag}: {choice.behind(answer) or answer.line}")


def _commands(best: Answer) -> dict[str, str]:
    ref = best.candidate.pull
    if not ref:
        return {}
    by_digest = f"{ref.rpartition(':')[0]}@{best.candidate.digest}"
    return {"pull": f"docker pull {ref}", "run": f"docker run --rm --gpus all {by_digest}"}


def _document(choice: Choice, machine: pick.Host) -> dict[str, object]:
    best = choice.best
    return {
        "host": {"driver": machine.driver, "gpus": list(machine.gpus), "machine": machine.machine},
        "picked": None if best is None else {**_entry(best), **_commands(best)},
        "others": [
            {**_entry(answer), "reason": choice.behind(answer) or answer.line}
            for answer in choice.others
        ],
    }


def _entry(answer: Answer) -> dict[str, object]:
    judged = answer.judged
    return {
        "tag": answer.candidate.tag,
        "platform": answer.candidate.platform.format(),
        "digest": answer.candidate.digest,
        "cell": answer.candidate.cell.values(),
        "verdict": judged.verdict if judged is not None else "",
        "reason": answer.line,
        "facts": list(judged.facts) if judged is not None else [],
    }
