"""What a build says at its end."""

import click

from gpulayers.cli.known import hints
from gpulayers.cli.loaded import Loaded
from gpulayers.cli.progress import megabytes
from gpulayers.record import GATES, ImageRecord, Report

MARKS = {"passed": "passed", "failed": "FAILED", "not-run": "not run", "simulated": "simulated"}
SHOWN_LINES = 8


def print_summary(report: Report, found: Loaded, *, moved: bool) -> None:
    """Tags, sizes, gates and failures on stdout."""
    for image in report.images:
        _print_image(image, found.repository().name)
    _print_gates(report)
    count = dict.fromkeys(("built", "cached", "failed", "not-tried"), 0)
    for image in report.images:
        count[image.status] += 1
    said = ", ".join(f"{number} {word}" for word, number in count.items() if number)
    click.echo(f"\n{len(report.images)} images in {report.seconds:.1f} s: {said}")
    if count["built"] == 0 and not count["failed"] and not count["not-tried"]:
        click.echo("Nothing to build: the registry has every image already.")
    click.echo(
        f"size: {megabytes(report.sum_bytes)} as the sum of the images, "
        f"{megabytes(report.unique_bytes)} unique, {megabytes(report.pushed_bytes)} new in this run"
    )
    if not moved:
        click.echo("No tag moved (--no-push).")


def _print_image(image: ImageRecord, repository: str) -> None:
    click.echo(f"{image.status:9} {image.tag}  {megabytes(image.size_bytes)}")
    for tag in image.tags:
        click.echo(f"          {repository}:{tag}")
    failure = image.failure
    if failure is not None:
        click.echo(f"          {failure.cls} in {failure.step}")
        for line in failure.stderr_tail[-SHOWN_LINES:]:
            click.echo(f"            {line}")
        for hint in hints(failure.stderr_tail):
            click.echo(f"          {hint}")
        click.echo(f"          again: {failure.repeat}")


def _print_gates(report: Report) -> None:
    """One line a gate and word; images that share status and class are counted together."""
    click.echo("\ngates:")
    for name in GATES:
        words: dict[tuple[str, str], list[str]] = {}
        for image in report.images:
            gate = image.gates[name]
            words.setdefault((gate.status, gate.cls), []).append(gate.text)
        for (status, cls), texts in words.items():
            line = f"  {name:10} {MARKS[status]:9} {len(texts)} of {len(report.images)}"
            click.echo(f"{line}  {cls}: {_first(texts)}" if cls else line)
            for hint in hints(texts) if status == "failed" else ():
                click.echo(f"             {hint}")


def _first(texts: list[str]) -> str:
    """The text that all share, or the first one and how many say it in other words."""
    others = len(set(texts)) - 1
    return f"{texts[0]} (and {others} in other words)" if others else texts[0]
