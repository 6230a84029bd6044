"""``why``: the verdict on any combination, in the matrix or not."""

import json
import sys

import click

from gpulayers.cli import verdicts
from gpulayers.compat import query
from gpulayers.compat.judge import judge
from gpulayers.errors import ProjectError
from gpulayers.facts.load import load

FRAMEWORK = "torch==2.7.1; `cuda==12.9.1` is a program of your own on plain CUDA."
# Options whose names are words of Python.
NAMES = {"os_name": "os", "packages": "with"}


@click.command("why", short_help="Say whether a combination runs, and by which facts.")
@click.option("--framework", required=True, metavar="NAME==VERSION", help=FRAMEWORK)
@click.option("--variant", default="", metavar="cuXXX|pypi", help="Which build of it.")
@click.option("--cuda", default="", metavar="X.Y", help="The build's CUDA, in place of --variant.")
@click.option("--gpu", required=True, metavar="MODEL|X.Y", help="L4, A100-80GB, 8.9, sm_89.")
@click.option("--driver", required=True, metavar="VERSION", help="535.183.01, 535 or jetpack6.")
@click.option("--python", default="", metavar="X.Y", help="3.12, 3.13t.")
@click.option("--os", "os_name", default="", metavar="NAME", help="ubuntu22.04, debian12.")
@click.option("--platform", default="", metavar="OS/ARCH", help="linux/amd64 or linux/arm64.")
@click.option("--with", "packages", multiple=True, metavar="NAME==VERSION", help="Repeatable.")
@click.option("--base", default="", metavar="IMAGE", help="The base image, as its reference.")
@click.option("--toolkit-mode", default="", type=click.Choice([*query.MODES]), help="Of the host.")
@click.option("--sm", default="", metavar="X.Y,…", help="SASS that a plain CUDA program has.")
@click.option("--ptx", default="", metavar="X.Y,…", help="PTX that it has.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def why_command(*, as_json: bool, **words: str | tuple[str, ...]) -> None:
    """Say whether a combination runs, by which facts, and what would.

    Exit code 0 for ok and ok-minor-compat, 10 for needs-forward-compat, 11 for broken, 12 for
    unknown.
    """
    asked = {NAMES.get(name, name.replace("_", "-")): value for name, value in words.items()}
    beside = asked["with"] if isinstance(asked["with"], tuple) else ()
    for name in ("sm", "ptx"):
        asked[name] = tuple(part.strip() for part in str(asked[name]).split(",") if part.strip())
    facts = load([name.partition("==")[0] for name in (str(asked["framework"]), *beside)])
    try:
        found = judge(query.parse(asked, facts), facts)
    except ProjectError as error:
        msg = f"{error}; {error.hint}" if error.hint else str(error)
        raise click.UsageError(msg) from error
    if as_json:
        click.echo(json.dumps(verdicts.document(found), indent=2))
    else:
        click.echo("\n".join(verdicts.lines(found)))
    sys.exit(verdicts.EXIT_CODES[found.verdict])
