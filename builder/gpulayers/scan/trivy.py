"""Trivy, run so that its answer can be believed: by digest, in its own folder, checked after."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, Self

from packaging.version import InvalidVersion, Version

from gpulayers.engine import process
from gpulayers.engine.process import Finished
from gpulayers.errors import ScanNotMadeError, ToolError
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import cache, command
from gpulayers.scan.command import Request
from gpulayers.scan.failure import classify
from gpulayers.scan.finding import DbState
from gpulayers.scan.gate import Outcome, summary
from gpulayers.scan.report import WrongReportError, parse

MINIMUM = Version("0.68")  # the first that opens its database for reading only
# Published by a thief on 2026-03-19 and 2026-03-22: GHSA-69fq-xp46-6x23, CVE-2026-33634.
MALICIOUS = frozenset({Version("0.69.4"), Version("0.69.5"), Version("0.69.6")})
INSTALL = "install a current Trivy from its makers (https://trivy.dev) and put it on PATH"
LOCK_WAIT_S = 3600.0
SHORT_S = 60.0
DOWNLOAD_S = 900.0


class Run(Protocol):
    """What starts a program: ``engine.process.run``, or a stand-in that keeps what it was asked."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
    ) -> Finished:
        """Run it to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trivy:
    """A Trivy that may be used; ``program`` is its absolute path."""

    program: str
    version: str
    run: Run

    @classmethod
    def find(cls, path: str | None = None, *, run: Run = process.run) -> Self:
        """The Trivy at a path, or the one on PATH.

        Raises: ToolError: there is none, it is older than 0.68, or it is one of the malicious
        releases of March 2026.
        """
        found = shutil.which(path or "trivy")
        if found is None:
            there = f"there is no Trivy at {path}" if path else "there is no trivy on PATH"
            msg = f"{there}: wanted {MINIMUM} or newer, found none"
            raise ToolError(msg, hint=INSTALL)
        program = str(Path(found).absolute())
        argv = command.clean(program, "version", "--format", "json")
        version = _version(program, run(argv, env=command.QUIET, timeout_s=SHORT_S))
        _check_version(program, version)
        return cls(program=program, version=str(version), run=run)

    def scan(  # noqa: PLR0913 - each is a choice of the caller's
        self,
        ref: ImageRef,
        platform: Platform,
        *,
        state: Path,
        db: DbState,
        insecure: bool,
        out: Path,
        timeout_s: float,
    ) -> Outcome:
        """Scan the image that has this digest, straight from its registry.

        Shape: ``passed`` says that the scan was made, nothing of what it found. Without a ready
        database it is ``not-run``, and its report has packages and secrets all the same. ``out``
        is written when there is a report, whole or not at all; an older one stays otherwise.
        Units: ``timeout_s`` is for the scan itself; waiting for other scans comes on top.
        """
        request = Request(
            ref=ref,
            platform=platform,
            state=state.absolute(),
            db=db,
            insecure=insecure,
            out=out,
            timeout_s=timeout_s,
        )
        try:
            with cache.held(request.state, wait_s=LOCK_WAIT_S):
                outcome = self._scan(request)
                if outcome.cls != "scan-database-broken" or outcome.report is not None:
                    return outcome
                # Found to be broken in use: what needs no database is still worth having.
                return self._scan(replace(request, db=db.refused(outcome.text)))
        except cache.LockTimeoutError as error:
            return _not_made("scan-timeout", str(error), LOCK_WAIT_S)

    def convert(
        self, report: Path, out: Path, *, form: Literal["cyclonedx", "spdx-json"], state: Path
    ) -> None:
        """Write a report that holds all packages in another format, whole or not at all.

        Raises: ScanNotMadeError: Trivy could not.
        """
        unchecked = _unchecked(out)
        arguments = ["convert", "--format", form, "--output", str(unchecked.absolute())]
        with cache.workplace(state.absolute()) as place:
            argv = command.clean(self.program, *arguments, str(report.absolute()))
            env = command.environment(place)
            finished = self.run(argv, env=env, cwd=place / "cwd", timeout_s=SHORT_S)
        if not finished.ok or not unchecked.is_file():
            unchecked.unlink(missing_ok=True)
            msg = f"{report} could not be written as {form}: {classify(finished)[1]}"
            raise ScanNotMadeError(msg, hint=f"try it by hand: trivy convert --format {form}")
        unchecked.replace(out)

    def download(self, cache_dir: Path) -> str:
        """Fill a new cache folder with the vulnerability database; why not, or nothing."""
        arguments = ["image", "--download-db-only", "--no-progress", "--cache-dir", str(cache_dir)]
        with cache.workplace(cache_dir.parent) as place:
            argv = command.clean(self.program, *arguments)
            env = command.environment(place)
            finished = self.run(argv, env=env, cwd=place / "cwd", timeout_s=DOWNLOAD_S)
        return "" if finished.ok else classify(finished)[1]

    def _scan(self, request: Request) -> Outcome:
        request.out.parent.mkdir(parents=True, exist_ok=True)
        unchecked = _unchecked(request.out)
        try:
            with cache.workplace(request.state) as place:
                command.furnish(place, request)
                argv = command.clean(self.program, *command.image(request, place, unchecked))
                env = command.environment(place)
                finished = self.run(argv, env=env, cwd=place / "cwd", timeout_s=request.timeout_s)
            return self._checked(finished, unchecked, request)
        finally:
            unchecked.unlink(missing_ok=True)

    def _checked(self, finished: Finished, unchecked: Path, request: Request) -> Outcome:
        if not finished.ok:
            return _not_made(*classify(finished), finished.seconds)
        try:
            report = parse(
                unchecked.read_text(encoding="utf-8"),
                ref=request.ref,
                platform=request.platform,
                trivy=self.version,
                database=request.db,
            )
        except OSError as error:
            msg = f"Trivy ended with status 0 and wrote no report: {error.strerror}"
            return _not_made("scan-unreadable", msg, finished.seconds)
        except WrongReportError as error:
            return _not_made(error.cls, str(error), finished.seconds)
        unchecked.replace(request.out)
        reason = request.db.reason
        return Outcome(
            status="not-run" if reason else "passed",
            cls=request.db.cls,
            text=f"{reason}; {summary(report)}" if reason else summary(report),
            seconds=finished.seconds,
            report_path=request.out,
            report=report,
        )


def _unchecked(out: Path) -> Path:
    return out.with_name(f".{out.name}.unchecked")


def _not_made(cls: str, text: str, seconds: float) -> Outcome:
    return Outcome(
        status="not-run", cls=cls, text=text, seconds=seconds, report_path=None, report=None
    )


def _version(program: str, finished: Finished) -> Version:
    try:
        answer: object = json.loads(finished.stdout) if finished.ok else None
        text = answer.get("Version") if isinstance(answer, dict) else None
        return Version(str(text))
    except (ValueError, InvalidVersion) as error:
        said = " / ".join(finished.tail(3)) or "nothing"
        msg = f"{program} does not tell its version (status {finished.code}); it said: {said}"
        raise ToolError(msg, hint=INSTALL) from error


def _check_version(program: str, version: Version) -> None:
    if version in MALICIOUS:
        msg = f"{program} is Trivy {version}, a malicious release (CVE-2026-33634)"
        raise ToolError(msg, hint=f"remove it, renew the secrets of this machine, {INSTALL}")
    if version < MINIMUM:
        msg = f"{program} is Trivy {version}: wanted {MINIMUM} or newer"
        raise ToolError(msg, hint=INSTALL)
