"""The commands of ``python3 tools/devenv``."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from devenv import engine, mounts, packages, processes, programs, project, registry, scanner, state
from devenv.command import path_without
from devenv.layout import Layout, of_checkout
from devenv.report import read_status, show
from devenv.talk import DevenvError, say

INTERRUPTED = 130


def up(layout: Layout) -> None:
    """Have engine, registry, mmdebstrap and Trivy, and write the environment file."""
    with state.lock(layout):
        is_private = engine.is_private(layout)
        values = _engine_up(layout) if is_private else _machine_engine(layout)
        registry.up(layout)
        _bootstrap_up(layout)
        text = state.format_env(values | registry.environment(layout))
        state.write_atomically(layout.env_file, text)
        say("environment", "written", str(layout.env_file))
        scanner.up(layout)


def _engine_up(layout: Layout) -> dict[str, str]:
    engine.check_possible()
    engine.check_disk(layout)
    engine.fetch(layout)
    engine.start(layout)
    return engine.private_environment(layout)


def _machine_engine(layout: Layout) -> dict[str, str]:
    say("docker", "found", engine.found_line(layout))
    programs.unlink(layout, (*programs.ENGINE_PACKAGES, *programs.ENGINE_HELPERS))
    return {}


def _bootstrap_up(layout: Layout) -> None:
    own = shutil.which("mmdebstrap", path=path_without(layout.bin))
    if own is not None:
        say("mmdebstrap", "found", own)
    elif packages.is_debian():
        if packages.is_unpacked(layout, "mmdebstrap"):
            say("mmdebstrap", "found", packages.version(layout, "mmdebstrap"))
        has_mount = shutil.which("mount", path=path_without(layout.bin)) is not None
        names = programs.BOOTSTRAP_PACKAGES[: 1 if has_mount else None]
        packages.fetch(layout, packages.own_suite(), names, with_needs=True)
        programs.link(layout, names)
    else:
        say(
            "mmdebstrap",
            "missing",
            "install it where base images are to be made from Debian packages",
        )


def down(layout: Layout) -> None:
    """Stop engine and registry; their data stays."""
    with state.lock(layout):
        _down(layout)


def _down(layout: Layout, *, with_data: bool = False) -> None:
    for name, was_up in (
        ("registry", registry.stop(layout, with_data=with_data)),
        ("docker", engine.stop(layout)),
    ):
        say(name, "stopped" if was_up else "not up")
    mounts.unmount(layout)
    if not processes.find(engine.DAEMON, layout.daemon_config):
        shutil.rmtree(layout.run, ignore_errors=True)


def clean(layout: Layout) -> None:
    """Stop everything and remove everything that was made."""
    with state.lock(layout):
        _down(layout, with_data=True)
        for name in mounts.remove(layout):
            say(name, "removed")


def run(layout: Layout, argv: Sequence[str]) -> int:
    """Run a command with the environment of the last `up`; only returns when it cannot start."""
    if not layout.env_file.is_file():
        msg = f"{layout.env_file} is not there"
        raise DevenvError(msg, hint="run `python3 tools/devenv up` first")
    values = state.parse_env(layout.env_file.read_text(encoding="utf-8"))
    prefix = values.get("PATH_PREFIX", "")
    path = os.pathsep.join(part for part in (prefix, path_without(Path(prefix))) if part)
    env = {**engine.machine_environment(layout), **values, "PATH": path}
    try:
        os.execvpe(argv[0], list(argv), env)  # noqa: S606 - the command is the caller's own
    except OSError as error:
        msg = f"{argv[0]}: {error.strerror}"
        raise DevenvError(msg) from error


def status(layout: Layout, *, as_json: bool) -> int:
    """Say what runs; 0 when all is up, else 5."""
    facts = read_status(layout)
    sys.stdout.write(json.dumps(facts, indent=2) + "\n" if as_json else show(facts))
    return 0 if facts["up"] else DevenvError.exit_code


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python3 tools/devenv", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for name, about in (
        ("venv", "make .venv with the project in it"),
        ("up", "start engine and registry, fetch mmdebstrap and Trivy"),
        ("down", "stop engine and registry, keep their data"),
        ("clean", "stop and remove everything that was made"),
    ):
        commands.add_parser(name, help=about)
    look = commands.add_parser("status", help="say what runs")
    look.add_argument("--json", action="store_true", help="for programs")
    execute = commands.add_parser("run", help="run a command with that environment")
    execute.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD ...")
    return top


def _dispatch(args: argparse.Namespace, layout: Layout) -> int:
    match str(args.command):
        case "venv":
            with state.lock(layout):
                project.make(layout)
        case "up":
            up(layout)
        case "down":
            down(layout)
        case "clean":
            clean(layout)
        case "status":
            return status(layout, as_json=bool(args.json))
        case _:
            words = [str(word) for word in args.argv]
            words = words[1:] if words[:1] == ["--"] else words
            if not words:
                msg = "no command to run"
                raise DevenvError(msg, hint="python3 tools/devenv run -- CMD ...")
            return run(layout, words)
    return 0


def main(words: Sequence[str]) -> int:
    """Run one command; its exit code."""
    args = parser().parse_args(words)
    try:
        return _dispatch(args, of_checkout(Path(__file__).resolve().parents[2]))
    except DevenvError as error:
        sys.stdout.flush()
        sys.stderr.write(f"error: {error}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command goes on from here\n")
        return INTERRUPTED
