"""The registry, the scanner and its database."""

from datetime import UTC, datetime
from pathlib import Path

from gpulayers.doctor.model import Machine, Part, part, skipped
from gpulayers.errors import RemoteError, ToolError
from gpulayers.scan import database
from gpulayers.scan.trivy import MINIMUM as TRIVY_MIN
from gpulayers.scan.trivy import Trivy


def registry_part(machine: Machine) -> Part:
    """Whether the registry answers and this login may write to it."""
    wanted = f"a login that may write to {machine.root}/{machine.name}"
    if not machine.root:
        return skipped("registry", why="no project here names one", wanted="a registry")
    host = machine.root.partition("/")[0]
    try:
        answers = machine.registry.ping(host)
        ok = answers and machine.registry.can_push(f"{machine.root}/{machine.name}")
    except RemoteError as error:
        fix = f"{error.hint}; if another registry is meant: --registry HOST/PATH".removeprefix("; ")
        return part("registry", ok=False, found=str(error), wanted=wanted, fix=fix)
    found = f"{host} answers" + (
        ", and lets this login write" if ok else ", and refuses this login" if not answers else ""
    )
    found += "" if ok or not answers else f", and does not let this login write to {machine.name}"
    fix = f"docker login {host}, with a login that may push"
    return part("registry", ok=ok, found=found, wanted=wanted, fix=fix)


def trivy_parts(machine: Machine) -> tuple[Part, Part]:
    """Whether there is a Trivy that may be used, and a database for it; none is downloaded here."""
    wanted = f"Trivy {TRIVY_MIN} or newer"
    try:
        found = Trivy.find(machine.trivy, run=machine.run).version
    except ToolError as error:
        tool = part("trivy", ok=False, found=str(error), wanted=wanted, fix=error.hint)
    else:
        tool = part("trivy", ok=True, found=found, wanted=wanted, fix="")
    return tool, _database(machine)


def _database(machine: Machine) -> Part:
    name, wanted = "trivy-database", "a vulnerability database of Trivy"
    given = machine.environ.get(database.GIVEN)
    state = database.inspect(Path(given) if given else machine.trivy_state / "db")
    if state.status == "ready":
        age = (machine.now or datetime.now(UTC)) - state.updated if state.updated else None
        found = "of unknown age" if age is None else f"{age.days} days old"
        return part(name, ok=True, found=f"{state.folder}, {found}", wanted=wanted, fix="")
    if state.status == "missing" and not given:
        fix = f"the first scan downloads it; offline, set {database.GIVEN} to a folder that has it"
        return skipped(name, why=state.reason, wanted=wanted, fix=fix)
    fix = f"correct {database.GIVEN}" if given else "remove that folder: a scan downloads it anew"
    return part(name, ok=False, found=state.reason, wanted=wanted, fix=fix)
