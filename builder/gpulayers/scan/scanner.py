"""Scans for one run of ours: Trivy and its database, found once and used from many threads."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from gpulayers.errors import ScanNotMadeError
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import cache, database, sbom
from gpulayers.scan.finding import DbState
from gpulayers.scan.gate import Outcome
from gpulayers.scan.trivy import Trivy

TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """Scans images into a folder a digest; safe to use from many threads and processes at once.

    Shape: scans of one state folder run one after the other, because they share what they learn
    about layers; whoever waits is in nobody's time-out.
    """

    trivy: Trivy
    state: Path
    database: DbState

    @classmethod
    def open(
        cls,
        state: Path,
        *,
        trivy: Trivy | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Find Trivy and a database; the one time in a run that a download is tried.

        Raises: ToolError: there is no Trivy that may be used.
        """
        program = trivy or Trivy.find()
        state.mkdir(parents=True, exist_ok=True)
        cache.sweep(state, now_s=time.time())
        found = database.ready(
            state, environ=environ, now=datetime.now(UTC), download=program.download
        )
        return cls(trivy=program, state=state, database=found)

    def scan(
        self,
        ref: ImageRef,
        platform: Platform,
        *,
        reports: Path,
        insecure: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> Outcome:
        """Scan one image and write its bills of materials; no policy is asked yet.

        Shape: ``reports/HEX/trivy.json``, ``sbom.cdx.json`` and ``sbom.spdx.json``, HEX being the
        digest's 64 digits.
        """
        out = reports / ref.digest.removeprefix("sha256:") / "trivy.json"
        outcome = self.trivy.scan(
            ref,
            platform,
            state=self.state,
            db=self.database,
            insecure=insecure,
            out=out,
            timeout_s=timeout_s,
        )
        if outcome.report_path is None:
            return outcome
        try:
            sbom.make(self.trivy, outcome.report_path, state=self.state)
        except ScanNotMadeError as error:
            return replace(outcome, status="not-run", cls="scan-sbom-failed", text=str(error))
        return outcome
