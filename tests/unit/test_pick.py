"""The best image for a machine: it agrees with `why`, and says why the others are not."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from catalog_samples import image, write_state
from click.testing import CliRunner, Result
from lock_samples import REPOSITORY, packaged_library, read_matrix

from gpulayers import catalog, pick
from gpulayers.cli import main
from gpulayers.compat import query
from gpulayers.compat.judge import judge
from gpulayers.engine.process import Finished
from gpulayers.errors import ToolError
from gpulayers.facts.load import load
from gpulayers.matrix import select
from gpulayers.pick import Candidate, Choice, Host, Wish
from gpulayers.pick.host import read_host
from gpulayers.plan import sorting
from gpulayers.plan.verdicts import Judging
from gpulayers.scan.trivy import Run

FACTS = load()
HOSTS = [
    Host(driver=driver, gpus=(gpu,))
    for driver, gpu in [
        ("470.256.02", "T4"),
        ("470.256.02", "A100-80GB"),
        ("525.60.13", "V100"),
        ("525.60.11", "A10"),
        ("525.147.05", "L4"),
        ("535", "H100"),
        ("535.183.01", "L4"),
        ("535.183.01", "RTX 4090"),
        ("535.183.01", "GTX 1080 Ti"),
        ("550.163.01", "A100"),
        ("550.163.01", "L40S"),
        ("560.35.05", "RTX 3090"),
        ("565.57.01", "RTX 4090"),
        ("570.26", "V100"),
        ("570.211.01", "B200"),
        ("570.211.01", "RTX 5090"),
        ("570.211.01", "T4"),
        ("575.57.08", "H200"),
        ("580.65.06", "A100"),
        ("580.95.05", "B300"),
        ("580.95.05", "GH200"),
        ("580.95.05", "GTX 1080 Ti"),
        ("590.48.01", "V100"),
        ("590.48.01", "L4"),
        ("595.99.02", "H100"),
        ("610.57.04", "RTX 5090"),
        ("620.70.06", "B200"),
        ("jetpack6", "Orin"),
        ("580", "8.9"),
        ("999.10", "H100"),
    ]
]


@cache
def whole() -> tuple[Judging, tuple[Candidate, ...]]:
    """Every image of the reference fleet."""
    matrix = read_matrix(REPOSITORY / "matrix.toml")
    judging = Judging(matrix)
    found = sorting.sort(judging, packaged_library(), select.choose(matrix))
    return judging, pick.planned(matrix, found)


def planned() -> tuple[Judging, tuple[Candidate, ...]]:
    """Those of one OS and Python; all of them take their time, and are tried elsewhere."""
    judging, every = whole()
    return judging, tuple(
        c for c in every if c.cell.os == "debian12" and c.cell.python.format() == "3.12"
    )


def asked(judging: Judging, image: Candidate, host: Host) -> dict[str, str | tuple[str, ...]]:
    """What a person gives `why` about an image and a machine."""
    cell = image.cell
    known = judging.query(cell, image.platform)
    return {
        "framework": cell.framework.format(),
        "cuda": cell.cuda.format(),
        "gpu": host.gpus[0],
        "driver": host.driver,
        "python": cell.python.format(),
        "os": cell.os,
        "platform": image.platform.format(),
        "with": tuple(pin.format() for pin in known.packages),
        "base": known.base,
        "variant": "",
        "toolkit-mode": "",
        "sm": (),
        "ptx": (),
    }


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: f"{host.gpus[0]} {host.driver}")
def test_it_agrees_with_why(host: Host) -> None:
    judging, candidates = planned()
    agrees_with_why(judging, candidates, host)


@pytest.mark.sweep
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: f"{host.gpus[0]} {host.driver}")
def test_it_agrees_with_why_on_every_image(host: Host) -> None:
    judging, candidates = whole()
    agrees_with_why(judging, candidates, host)


def agrees_with_why(judging: Judging, candidates: Sequence[Candidate], host: Host) -> None:
    """Each image has the verdict that `why` gives of it, and the best is one of the best."""
    choice = pick.choose(judging, candidates, host, Wish())
    answers = [*([choice.best] if choice.best else []), *choice.others]
    assert len(answers) == len(candidates)
    words = {}
    for answer in answers:
        parsed = query.parse(asked(judging, answer.candidate, host), judging.facts)
        why = judge(parsed, judging.facts, with_fixes=False).verdict
        assert answer.judged is not None
        assert answer.judged.verdict == why
        words[answer.candidate] = why
    runs = [word for word in words.values() if word in {"ok", "ok-minor-compat"}]
    if choice.best is None:
        assert not runs
    else:
        best = words[choice.best.candidate]
        assert best in {"ok", "ok-minor-compat"}
        assert "ok" not in runs or best == "ok"


def chosen(host: Host) -> Choice:
    judging, candidates = planned()
    return pick.choose(judging, candidates, host, Wish())


def test_the_worst_gpu_of_a_machine_decides() -> None:
    both = Host(driver="580.95.05", gpus=("L4", "B200"))
    found = chosen(both).best
    assert found is not None
    framework = found.candidate.cell.framework.format()
    alone = chosen(Host(driver="580.95.05", gpus=("B200",))).best
    assert alone is not None
    assert framework == alone.candidate.cell.framework.format()


def test_a_machine_of_arm64_gets_images_for_it() -> None:
    found = chosen(Host(driver="580.95.05", gpus=("GH200",), machine="aarch64"))
    assert found.best is not None
    assert found.best.candidate.platform.format() == "linux/arm64"
    aside = {answer.line for answer in found.others if answer.judged is None}
    assert aside == {"is for linux/amd64, the machine is aarch64"}


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["pick", "--project", str(folder), *words])


L4 = ("--driver", "535.183.01", "--gpu", "L4")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose last run made three images."""
    text = (REPOSITORY / "matrix.toml").read_text(encoding="utf-8")
    (tmp_path / "matrix.toml").write_text(text, encoding="utf-8")
    cell = dict(image().cell)
    images = [
        image("old", cell={**cell, "framework": "torch==2.8.0"}),
        image("new", cell={**cell, "cuda": "13.0", "framework": "torch==2.14.1"}),
        image("jax", cell={**cell, "cuda": "12.6", "framework": "jax==0.10.2"}),
    ]
    write_state(tmp_path / ".gpulayers", images)
    return tmp_path


def test_the_image_is_named_with_the_commands_that_pull_and_run_it(project: Path) -> None:
    done = run(project, *L4, "--framework", "torch")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "pick  old  (linux/amd64)"
    assert "pull  docker pull 127.0.0.1:5000/acme/gpu:old-edge" in lines
    digest = image("old").digest
    assert f"run   docker run --rm --gpus all 127.0.0.1:5000/acme/gpu@{digest}" in lines
    assert "not   jax: has jax==0.10.2, asked for torch" in lines
    (new,) = [line for line in lines if line.startswith("not   new: ")]
    assert "needs-forward-compat: CUDA 13 runs from driver 580.65.06 on" in new


def test_one_that_runs_too_is_told_what_it_is_behind_in(project: Path) -> None:
    done = run(project, "--driver", "580.95.05", "--gpu", "L4", "--framework", "torch")
    assert "pick  new" in done.stdout
    said = "not   old: runs too (ok); its framework is torch==2.8.0, the best has torch==2.14.1"
    assert said in done.stdout


def test_nothing_that_runs_ends_with_4_and_the_reasons(project: Path) -> None:
    done = run(project, "--driver", "470.256.02", "--gpu", "RTX 2080 Ti")
    assert done.exit_code == 4
    assert done.stderr == "nothing runs on RTX 2080 Ti with driver 470.256.02\n"
    assert done.stdout.count("broken: ") == 3


def test_json_says_the_same(project: Path) -> None:
    found = json.loads(run(project, *L4, "--json").stdout)
    assert found["host"] == {"driver": "535.183.01", "gpus": ["L4"], "machine": ""}
    assert found["picked"]["verdict"] == "ok-minor-compat"
    assert found["picked"]["pull"].startswith("docker pull ")
    assert {entry["tag"] for entry in found["others"]} | {found["picked"]["tag"]} == {
        *("old", "new", "jax")
    }


def test_an_image_that_did_not_pass_is_not_offered(project: Path) -> None:
    state = catalog.read(project / ".gpulayers")
    failure = SimpleNamespace(cls="scan-rejected")
    bad = replace(state.last[0], failure=failure)  # type: ignore[arg-type]
    offers = pick.built([bad], state.holders, ("edge", "stable"))
    assert [offer.refused for offer in offers] == ["did not pass: scan-rejected"]


def test_the_highest_channel_that_has_it_is_pulled(project: Path) -> None:
    state = catalog.read(project / ".gpulayers")
    ref = "127.0.0.1:5000/acme/gpu:old"
    holders = {**state.holders, ref: image("old").digest}
    found = pick.built(state.images, holders, ("edge", "stable"))
    offers = {offer.tag: offer.pull for offer in found}
    assert offers["old"] == ref
    assert offers["new"] == "127.0.0.1:5000/acme/gpu:new-edge"


def test_without_builds_planned_is_named(tmp_path: Path) -> None:
    text = (REPOSITORY / "matrix.toml").read_text(encoding="utf-8")
    (tmp_path / "matrix.toml").write_text(text, encoding="utf-8")
    done = run(tmp_path, *L4)
    assert done.exit_code == 4
    assert "no image was built here yet: gpulayers build, or --planned" in done.stderr
    assert run(tmp_path, *L4, "--planned", "--framework", "torch==2.8.*").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "wanted --driver and --gpu, or --host"),
        (("--host", *L4), "leave out --driver and --gpu"),
        (("--driver", "535", "--gpu", "L44"), "unknown GPU 'L44'"),
        (("--driver", "new", "--gpu", "L4"), "unknown driver 'new'"),
        ((*L4, "--framework", "torch=2"), "wanted a name with or without versions"),
    ],
)
def test_wrong_words_are_told(project: Path, words: Sequence[str], said: str) -> None:
    done = run(project, *words)
    assert done.exit_code == 2
    assert said in done.stderr


class Nvml:
    """A fake of the module of nvidia-ml-py."""

    class NVMLError(Exception):
        pass

    def __init__(self, *names: str, broken: bool = False) -> None:
        self.names, self.broken = names, broken

    def nvmlInit(self) -> None:  # noqa: N802
        if self.broken:
            msg = "Driver/library version mismatch"
            raise self.NVMLError(msg)

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"535.183.01"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return self.names[handle]

    def nvmlDeviceGetCudaComputeCapability(self, _: int) -> tuple[int, int]:  # noqa: N802
        return 8, 9


def smi(code: int, stdout: str = "", stderr: str = "") -> Run:
    def answer(*_: object, **_named: object) -> Finished:
        return Finished(
            argv=("nvidia-smi",),
            code=code,
            stdout=stdout,
            stderr=stderr,
            seconds=0.1,
            timed_out=False,
        )

    return answer


def test_nvml_is_asked_first_and_a_strange_gpu_is_its_compute_capability() -> None:
    module = Nvml("NVIDIA L4", "NVIDIA L4", "NVIDIA Marvel 9")
    found = read_host(FACTS, module=lambda: module, run=smi(1))  # type: ignore[arg-type, return-value]
    assert (found.driver, found.gpus) == ("535.183.01", ("NVIDIA L4", "8.9"))
    assert found.machine


def test_without_it_nvidia_smi_is_asked() -> None:
    answer = smi(0, "NVIDIA A100-SXM4-80GB, 580.95.05, 8.0\n")
    found = read_host(FACTS, module=lambda: None, run=answer)
    assert (found.driver, found.gpus) == ("580.95.05", ("NVIDIA A100-SXM4-80GB",))


def test_what_both_said_is_told() -> None:
    module = Nvml(broken=True)
    said = r"NVML: Driver/library version mismatch; nvidia-smi: has failed"
    with pytest.raises(ToolError, match=said):
        read_host(FACTS, module=lambda: module, run=smi(9, stderr="has failed"))  # type: ignore[arg-type, return-value]
