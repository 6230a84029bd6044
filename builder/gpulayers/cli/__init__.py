"""The command line: one group, one place where errors become exit codes."""

import errno
import os
import signal
import sys
import traceback
from pathlib import Path

import click

from gpulayers import __version__
from gpulayers.cli.blanked import blanked_streams
from gpulayers.errors import GpulayersError
from gpulayers.secrecy import blank

COMMANDS = {
    "build": "gpulayers.cli.building",
    "catalog": "gpulayers.cli.publishing",
    "check": "gpulayers.cli.looking",
    "diagnose": "gpulayers.cli.diagnosing",
    "doctor": "gpulayers.cli.publishing",
    "init": "gpulayers.cli.starting",
    "inspect": "gpulayers.cli.inspecting",
    "list": "gpulayers.cli.looking",
    "lock": "gpulayers.cli.locking",
    "logs": "gpulayers.cli.keeping",
    "patch": "gpulayers.cli.patching",
    "pick": "gpulayers.cli.picking",
    "plan": "gpulayers.cli.looking",
    "promote": "gpulayers.cli.publishing",
    "prune": "gpulayers.cli.pruning",
    "render": "gpulayers.cli.looking",
    "run": "gpulayers.cli.handy",
    "scan": "gpulayers.cli.gating",
    "shell": "gpulayers.cli.handy",
    "status": "gpulayers.cli.standings",
    "test": "gpulayers.cli.gating",
    "why": "gpulayers.cli.asking",
}
HELP = {
    "build": "Build, check, push and tag the images of the matrix: the main job.",
    "catalog": "Write a page and JSON of every image.",
    "check": "Name every problem in the project's files at once.",
    "diagnose": "Say what the errors in a log come from.",
    "doctor": "Say what this machine has and lacks.",
    "init": "Start a project that builds at once.",
    "inspect": "Show what is inside an image.",
    "list": "Show the cells: kept, impossible and excluded.",
    "lock": "Resolve everything to digests and hashes.",
    "logs": "Show the kept logs of builds.",
    "patch": "Take the OS updates of the whole fleet, and nothing else.",
    "pick": "The best image for a machine, and why the others are not.",
    "plan": "Show steps and images, and what would be built.",
    "promote": "Move a channel's tags to gated digests.",
    "prune": "Remove local caches.",
    "render": "Write Dockerfiles and docker-bake.json.",
    "run": "Run an image, with the GPU where there is one.",
    "scan": "Scan images.",
    "shell": "A shell in an image.",
    "status": "Say which images are stale, and why.",
    "test": "Run the smoke ladder.",
    "why": "Say whether a combination runs, and by which facts.",
}


class Commands(click.Group):
    """Commands that are imported when they are called: `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        from importlib import import_module

        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or "--help" not in sys.argv[1:2]:
            found = getattr(import_module(COMMANDS[cmd_name]), f"{cmd_name}_command")
            return found if isinstance(found, click.Command) else None
        return click.Command(cmd_name, short_help=HELP[cmd_name])

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; errors of ours end with their own exit code and say what to do."""
        try:
            from gpulayers.cli.interrupts import Interrupts

            with blanked_streams(), Interrupts():
                return super().invoke(ctx)
        except GpulayersError as error:
            _say_error(error)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)
        except BrokenPipeError:
            # Its reader has seen enough: no more words, and the status that a signal would give.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click's own business
        except OSError as error:
            if error.filename is None and error.errno == errno.ENOSPC:
                _say_error(GpulayersError("a disk is full", hint="make room where output goes"))
                sys.exit(5)
            if error.filename is None:
                _say_bug(error)
                sys.exit(1)
            full = error.errno == errno.ENOSPC
            _say_error(_of_file(error))
            sys.exit(5 if full else 3)
        except Exception as error:  # noqa: BLE001 - the one boundary: a bug of ours, told as such
            _say_bug(error)
            sys.exit(1)


def _of_file(error: OSError) -> GpulayersError:
    """A file that cannot be read or written is no bug of ours: which, and why."""
    msg = f"{error.filename}: {error.strerror or error}"
    return GpulayersError(msg, hint="look at its place, its kind and its permissions")


def _say_error(error: GpulayersError) -> None:
    click.echo(blank(f"error: {error}"), err=True)
    if error.hint:
        click.echo(blank(f"hint: {error.hint}"), err=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = blank(str(error)).replace("%", "%25").replace("\n", "%0A")
        click.echo(f"::error::{text}", err=True)


def _say_bug(error: Exception) -> None:
    from gpulayers import documents
    from gpulayers.engine.process import redact

    folder = Path(".gpulayers")
    text = redact("".join(traceback.format_exception(error)))
    try:
        documents.write(folder / "traceback.log", text)
        where = str(folder / "traceback.log")
    except OSError:
        click.echo(text, err=True)
        where = "above"
    click.echo(f"error: a bug of gpulayers: {type(error).__name__}: {redact(str(error))}", err=True)
    click.echo(f"hint: the traceback is in {where}; please report it", err=True)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpulayers")
def main() -> None:
    """Build, prove and ship a fleet of GPU container images from one matrix.toml."""
