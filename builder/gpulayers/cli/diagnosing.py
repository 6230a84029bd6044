"""`gpulayers diagnose`: what the errors in a log come from, and what mends them."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click

from gpulayers import catalog, diagnose, pick
from gpulayers.cli import loaded as project_files
from gpulayers.cli import verdicts
from gpulayers.cli.options import known_host, where
from gpulayers.cli.verdicts import wrapped
from gpulayers.compat.model import Judgement
from gpulayers.diagnose import Finding
from gpulayers.errors import NothingSelectedError
from gpulayers.facts.model import Origin
from gpulayers.refs import ImageRef

NOTHING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What the judge says of the image on that machine."""

    image: str
    judged: Judgement

    def by(self, finding: Finding) -> bool:
        """Whether a reason that decided the verdict is one that foretells an error."""
        rules = {reason.rule for reason in self.judged.decisive}
        return self.judged.verdict != "ok" and bool(rules & set(finding.error.foretold_by))


@click.command("diagnose", short_help="Say what the errors in a log come from.")
@click.argument("file", type=click.File("rb"), metavar="FILE|-")
@click.option("--image", default="", metavar="REF|TAG", help="The image of a build here.")
@click.option("--gpu", default="", metavar="MODEL|X.Y", help="The GPU that it ran on.")
@click.option("--driver", default="", metavar="VERSION", help="The driver that it ran on.")
@click.option(
    "--project",
    type=click.Path(file_okay=False, path_type=Path),
    help="The project's folder (default: the nearest parent with a matrix.toml).",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def diagnose_command(
    file: BinaryIO,
    *,
    image: str,
    gpu: str,
    driver: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Name the known errors of a log, causes first: whose fault, why, and what mends it.

    With --image, --gpu and --driver it says whether the verdict had foretold them. Exit code 4
    when no known error is there.
    """
    if len({bool(image), bool(gpu), bool(driver)}) > 1:
        msg = "wanted --image, --gpu and --driver together, or none of them"
        raise click.UsageError(msg)
    foretold = _foretold(image, gpu, driver, project) if image else None
    found = diagnose.find(diagnose.read(file))
    if as_json:
        click.echo(json.dumps(_document(found, foretold), indent=2))
    else:
        _say(found, foretold)
    sys.exit(0 if found else NOTHING)


def _foretold(image: str, gpu: str, driver: str, project: Path | None) -> Foretold:
    found = project_files.load(where(project, None, (), ""))
    known_host(found.judging.facts, driver, (gpu,))
    state = catalog.read(found.project.state)
    offers = pick.built(state.images, state.holders, found.matrix.images.channels)
    offers += pick.planned(found.matrix, found.whole)
    for each in offers:
        if image in {each.tag, each.pull, each.digest} or _same(image, each):
            judged = found.judging.at(
                each.cell, each.platform, driver=driver, gpu=gpu, with_fixes=True
            )
            return Foretold(image=each.tag, judged=judged)
    msg = f"{image}: wanted an image that was built here or a tag of the matrix, found neither"
    raise NothingSelectedError(msg, hint="gpulayers list shows the tags")


def _same(text: str, each: pick.Candidate) -> bool:
    """Whether a whole reference means it: by its digest, or by its tag with a channel or key."""
    if "/" not in text:
        return text.startswith(f"{each.tag}-") and bool(each.pull) and text in each.pull
    ref = ImageRef.parse(text)
    return bool(each.digest and ref.digest == each.digest) or text == each.pull


def _say(found: tuple[Finding, ...], foretold: Foretold | None) -> None:
    if not found:
        click.echo("no error that is known here", err=True)
    for number, finding in enumerate(found, 1):
        error = finding.error
        count = f", {finding.count} times" if finding.count > 1 else ""
        click.echo(f"{number}  {error.name}: {error.fault}  (line {finding.line}{count})")
        texts = {"found": finding.text, "cause": error.cause, "when": error.rule, "fix": error.fix}
        for name, text in texts.items():
            for line in wrapped(f"   {name:6} ", text):
                click.echo(line)
        for line in wrapped("   fact   ", _fact(error.origin)):
            click.echo(line)
        if foretold is not None and foretold.by(finding):
            click.echo(f"   foretold by the verdict on {foretold.image}, below")
    if foretold is not None:
        click.echo("")
        for line in verdicts.lines(foretold.judged):
            click.echo(line)


def _fact(origin: Origin) -> str:
    return f"[{origin.id}] {origin.confidence}: {origin.source}"


def _document(found: tuple[Finding, ...], foretold: Foretold | None) -> dict[str, object]:
    return {
        "errors": [
            {
                "name": finding.error.name,
                "fault": finding.error.fault,
                "code": finding.error.code,
                "line": finding.line,
                "count": finding.count,
                "text": finding.text,
                "cause": finding.error.cause,
                "rule": finding.error.rule,
                "fix": finding.error.fix,
                "fact": {
                    "id": finding.error.origin.id,
                    "source": finding.error.origin.source,
                    "confidence": finding.error.origin.confidence,
                },
                "foretold": foretold.by(finding) if foretold is not None else None,
            }
            for finding in found
        ],
        "verdict": verdicts.document(foretold.judged) if foretold is not None else None,
    }
