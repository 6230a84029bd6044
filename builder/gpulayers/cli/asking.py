"""``why``: the verdict on any combination, in the matrix or not."""

import json
import sys
from typing import TYPE_CHECKING

import click

from gpulayers.cli import verdicts
from gpulayers.cli.options import usage_error
from gpulayers.compat import query
from gpulayers.compat.judge import judge
from gpulayers.errors import ProjectError
from gpulayers.facts.load import load

if TYPE_CHECKING:
    from gpulayers.cli.looked_at import LookedAt

FRAMEWORK = "torch==2.7.1; `cuda==12.9.1` is a program of your own on plain CUDA."
# Options whose names are words of Python.
NAMES = {"os_name": "os", "packages": "with"}


@click.command("why", short_help="Say whether a combination runs, and by which facts.")
@click.option("--framework", default="", metavar="NAME==VERSION", help=FRAMEWORK)
@click.option("--image", default="", metavar="REF", help="What an image holds, in its place.")
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
@click.option("--deep", is_flag=True, help="Of --image: read every layer, and its GPU code.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def why_command(*, as_json: bool, image: str, deep: bool, **words: str | tuple[str, ...]) -> None:
    """Say whether a combination runs, by which facts, and what would.

    Exit code 0 for ok and ok-minor-compat, 10 for needs-forward-compat, 11 for broken, 12 for
    unknown.
    """
    asked = {NAMES.get(name, name.replace("_", "-")): value for name, value in words.items()}
    if bool(image) == bool(asked["framework"]):
        msg = "wanted --framework or --image, and not both"
        raise click.UsageError(msg)
    if deep and not image:
        msg = "--deep: wanted with --image"
        raise click.UsageError(msg)
    seen = _look(image, asked, deep=deep) if image else None
    beside = asked["with"] if isinstance(asked["with"], tuple) else ()
    for name in ("sm", "ptx"):
        asked[name] = tuple(part.strip() for part in str(asked[name]).split(",") if part.strip())
    facts = load([name.partition("==")[0] for name in (str(asked["framework"]), *beside)])
    try:
        parsed = query.parse(asked, facts)
        if seen is not None:
            parsed = seen.complete(parsed, facts)
        found = judge(parsed, facts)
    except ProjectError as error:
        raise usage_error(error) from error
    if as_json:
        document = verdicts.document(found)
        if seen is not None:
            document["image"] = seen.document()
        click.echo(json.dumps(document, indent=2))
    else:
        for line in seen.lines() if seen is not None else ():
            click.echo(line)
        click.echo("\n".join(verdicts.lines(found)))
    sys.exit(verdicts.EXIT_CODES[found.verdict])


def _look(image: str, asked: dict[str, str | tuple[str, ...]], *, deep: bool) -> "LookedAt":
    """Look at an image, and put what it says in the place of what nobody said."""
    from gpulayers.cli.looked_at import look

    seen = look(image, str(asked["platform"]), deep=deep)
    for name, text in seen.words().items():
        if not asked[name] and not (
            name in {"variant", "cuda"} and (asked["variant"] or asked["cuda"])
        ):
            asked[name] = text
    return seen
