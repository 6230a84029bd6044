"""How Trivy is chosen, called and believed; a stand-in keeps what it was asked."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpulayers.engine.process import Finished
from gpulayers.errors import ScanNotMadeError, ToolError
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import cache, command
from gpulayers.scan.finding import DbState
from gpulayers.scan.gate import Outcome
from gpulayers.scan.scanner import Scanner
from gpulayers.scan.trivy import Trivy

FIXTURES = Path(__file__).parents[1] / "fixtures" / "trivy"
AMD64 = Platform.parse("linux/amd64")
MISSING = DbState(status="missing", folder=None, java=None, updated=None, reason="none here")


@dataclass
class FakeTrivy:
    """Writes a document where it is told to, and ends as it is told to."""

    document: str = (FIXTURES / "planted.json").read_text(encoding="utf-8")
    codes: list[int] = field(default_factory=list)
    stderr: str = ""
    version: str = "0.76.0"
    pause_s: float = 0.0
    calls: list[list[str]] = field(default_factory=list)
    cwds: list[list[str]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
    ) -> Finished:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        assert env is not None
        assert env["TRIVY_SKIP_VERSION_CHECK"] == "true"
        assert timeout_s
        self.calls.append(list(argv))
        self.cwds.append([path.name for path in cwd.iterdir()] if cwd else [])
        time.sleep(self.pause_s)
        code = self.codes.pop(0) if self.codes else 0
        if code == 0 and "--output" in argv:
            Path(argv[argv.index("--output") + 1]).write_text(self.document, encoding="utf-8")
        self.running -= 1
        return Finished(
            argv=tuple(argv),
            code=code,
            stdout=json.dumps({"Version": self.version}),
            stderr=self.stderr if code else "",
            seconds=0.5,
            timed_out=False,
        )


def program(tmp_path: Path) -> str:
    path = tmp_path / "trivy"
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def ready(tmp_path: Path) -> DbState:
    folder = tmp_path / "db"
    folder.mkdir(exist_ok=True)
    return DbState(status="ready", folder=folder, java=None, updated=datetime.now(UTC), reason="")


def ref() -> ImageRef:
    document = json.loads((FIXTURES / "planted.json").read_text(encoding="utf-8"))
    return ImageRef.parse(document["ArtifactName"])


def scan(fake: FakeTrivy, tmp_path: Path, *, db: DbState | None = None) -> Outcome:
    trivy = Trivy(program="/opt/trivy", version="0.76.0", run=fake)
    return trivy.scan(
        ref(),
        AMD64,
        state=tmp_path / "state",
        db=db or ready(tmp_path),
        insecure=False,
        out=tmp_path / "out" / "trivy.json",
        timeout_s=60,
    )


@pytest.mark.parametrize("version", ["0.69.4", "0.69.5", "0.69.6"])
def test_a_malicious_release_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(ToolError, match="malicious") as caught:
        Trivy.find(program(tmp_path), run=FakeTrivy(version=version))
    assert caught.value.exit_code == 5
    assert "remove it" in caught.value.hint


def test_an_old_release_is_refused_with_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"0\.67\.2: wanted 0\.68"):
        Trivy.find(program(tmp_path), run=FakeTrivy(version="0.67.2"))


@pytest.mark.parametrize("version", ["0.68.0", "0.69.3", "0.76.0", "1.2.0"])
def test_other_releases_are_taken(tmp_path: Path, version: str) -> None:
    assert Trivy.find(program(tmp_path), run=FakeTrivy(version=version)).version == version


@pytest.mark.parametrize("version", ["", "dev", "None"])
def test_a_release_that_does_not_tell_its_version_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(ToolError, match="does not tell its version"):
        Trivy.find(program(tmp_path), run=FakeTrivy(version=version))


def test_a_missing_trivy_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no Trivy at") as caught:
        Trivy.find(str(tmp_path / "nowhere"), run=FakeTrivy())
    assert "install" in caught.value.hint


def test_a_scan_asks_for_the_digest_and_nothing_else(tmp_path: Path) -> None:
    fake = FakeTrivy()
    outcome = scan(fake, tmp_path)
    (call,) = fake.calls
    assert call[-1] == ref().format()
    assert call[call.index("--image-src") + 1] == "remote"
    assert call[call.index("--platform") + 1] == "linux/amd64"
    assert call[call.index("--scanners") + 1] == "vuln,secret"
    assert "--list-all-pkgs=true" in call
    assert "--insecure" not in call
    assert outcome.status == "passed"
    assert outcome.report_path == tmp_path / "out" / "trivy.json"


def test_a_tag_beside_the_digest_is_not_asked_for(tmp_path: Path) -> None:
    tagged = ImageRef(
        registry=ref().registry, repository=ref().repository, tag="edge", digest=ref().digest
    )
    fake = FakeTrivy()
    trivy = Trivy(program="/opt/trivy", version="0.76.0", run=fake)
    trivy.scan(
        tagged,
        AMD64,
        state=tmp_path / "state",
        db=ready(tmp_path),
        insecure=True,
        out=tmp_path / "trivy.json",
        timeout_s=60,
    )
    assert ":edge" not in fake.calls[0][-1]
    assert "--insecure" in fake.calls[0]


def test_a_scan_runs_in_an_empty_folder_that_is_removed(tmp_path: Path) -> None:
    fake = FakeTrivy()
    scan(fake, tmp_path)
    assert fake.cwds == [[]]
    assert list((tmp_path / "state" / "work").iterdir()) == []


def test_variables_that_filter_or_leak_do_not_reach_trivy() -> None:
    names = ("TRIVY_SEVERITY", "CI_TOKEN", "AWS_SECRET_ACCESS_KEY", "PATH")
    environ = dict.fromkeys((*names, "TRIVY_DISABLE_TELEMETRY"), "x")
    argv = command.clean("/opt/trivy", "image", environ=environ)
    assert argv == ["env", "-u", "CI_TOKEN", "-u", "TRIVY_SEVERITY", "/opt/trivy", "image"]


def test_without_a_database_the_packages_are_listed_and_nothing_passes(tmp_path: Path) -> None:
    fake = FakeTrivy(document=(FIXTURES / "no-database.json").read_text(encoding="utf-8"))
    outcome = scan(fake, tmp_path, db=MISSING)
    assert fake.calls[0][fake.calls[0].index("--scanners") + 1] == "secret"
    assert (outcome.status, outcome.cls) == ("not-run", "scan-database-missing")
    assert "none here" in outcome.text
    assert outcome.report is not None
    assert outcome.report.packages == 3


def test_a_database_that_breaks_in_use_leaves_the_packages(tmp_path: Path) -> None:
    fake = FakeTrivy(codes=[2], stderr="panic: assertion failed: Page expected to be: 9\n")
    outcome = scan(fake, tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-database-broken")
    assert outcome.report_path is not None
    assert len(fake.calls) == 2


def test_a_failed_scan_leaves_an_older_report_and_does_not_name_it(tmp_path: Path) -> None:
    scan(FakeTrivy(), tmp_path)
    before = (tmp_path / "out" / "trivy.json").read_bytes()
    outcome = scan(FakeTrivy(codes=[1], stderr="MANIFEST_UNKNOWN"), tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-image-missing")
    assert (outcome.report_path, outcome.report) == (None, None)
    assert (tmp_path / "out" / "trivy.json").read_bytes() == before


def test_status_0_with_the_document_of_another_image_is_no_scan(tmp_path: Path) -> None:
    document = (FIXTURES / "other-platform.json").read_text(encoding="utf-8")
    outcome = scan(FakeTrivy(document=document), tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-wrong-image")
    assert list((tmp_path / "out").iterdir()) == []


def test_status_0_without_a_document_is_no_scan(tmp_path: Path) -> None:
    outcome = scan(FakeTrivy(document=""), tmp_path)
    assert (outcome.status, outcome.cls) == ("not-run", "scan-unreadable")


def test_scans_of_one_state_folder_run_one_after_the_other(tmp_path: Path) -> None:
    fake = FakeTrivy(pause_s=0.02)
    threads = [threading.Thread(target=scan, args=(fake, tmp_path)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(fake.calls), fake.most_running) == (5, 1)


def test_a_lock_that_never_comes_free_is_given_up(tmp_path: Path) -> None:
    with (
        cache.held(tmp_path, wait_s=1),
        pytest.raises(cache.LockTimeoutError, match="another scan"),
        cache.held(tmp_path, wait_s=0.1),
    ):
        pass


def test_old_workplaces_are_swept_and_new_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "work" / "x").mkdir(parents=True)
    cache.sweep(tmp_path, now_s=time.time() + cache.LEFTOVER_S - 60)
    assert (tmp_path / "work" / "x").is_dir()
    cache.sweep(tmp_path, now_s=time.time() + cache.LEFTOVER_S + 60)
    assert not (tmp_path / "work" / "x").exists()


def scanner(fake: FakeTrivy, tmp_path: Path) -> Scanner:
    trivy = Trivy(program="/opt/trivy", version="0.76.0", run=fake)
    environ = {"GPULAYERS_OFFLINE": "1"}
    return Scanner.open(tmp_path / "state", trivy=trivy, environ=environ)


def test_a_scanner_keeps_report_and_sboms_by_digest(tmp_path: Path) -> None:
    scanner(FakeTrivy(), tmp_path).scan(ref(), AMD64, reports=tmp_path / "scans")
    folder = tmp_path / "scans" / ref().digest.removeprefix("sha256:")
    names = {path.name for path in folder.iterdir()}
    assert names == {"trivy.json", "sbom.cdx.json", "sbom.spdx.json"}


def test_a_scanner_without_a_database_says_so_once_for_all(tmp_path: Path) -> None:
    outcome = scanner(FakeTrivy(), tmp_path).scan(ref(), AMD64, reports=tmp_path / "scans")
    assert outcome.cls == "scan-database-missing"
    assert "GPULAYERS_OFFLINE" in outcome.text


def test_a_failed_sbom_is_no_pass(tmp_path: Path) -> None:
    fake = FakeTrivy(codes=[0, 1], stderr="convert broke")
    outcome = scanner(fake, tmp_path).scan(ref(), AMD64, reports=tmp_path / "scans")
    assert (outcome.status, outcome.cls) == ("not-run", "scan-sbom-failed")
    assert "convert broke" in outcome.text


def test_a_conversion_that_fails_says_how_to_repeat_it(tmp_path: Path) -> None:
    trivy = Trivy(program="/opt/trivy", version="0.76.0", run=FakeTrivy(codes=[1], stderr="no"))
    with pytest.raises(ScanNotMadeError) as caught:
        trivy.convert(tmp_path / "r", tmp_path / "o", form="spdx-json", state=tmp_path)
    assert "trivy convert" in caught.value.hint
    assert caught.value.exit_code == 14
