"""A builder that builds nothing: keeps what it was asked, writes what the test wants found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpulayers.engine.buildx import Buildx, OnVertex, Outcome, Secret, StepFailure
from gpulayers.engine.process import Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: its words, and the Dockerfile that stood in its context."""

    dockerfile: str
    output: str
    contexts: Mapping[str, str]
    secrets: tuple[Secret, ...]
    platform: str
    no_cache: bool
    arguments: Mapping[str, str]


Answer = Callable[[Call], Mapping[str, str] | StepFailure]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeBuildx(Buildx):
    """Answers with files for ``type=local``, a digest else, or a failure."""

    builder: str = ""
    network: str = "default"
    answer: Answer
    digest: str = "sha256:" + "d" * 64
    calls: list[Call] = field(default_factory=list)
    copied: list[tuple[str, str]] = field(default_factory=list)
    refused: str = ""

    def build(
        self,
        context: Path,
        *,
        output: str,
        target: str = "",
        contexts: Mapping[str, str] | None = None,
        arguments: Mapping[str, str] | None = None,
        secrets: Sequence[Secret] = (),
        platform: str = "",
        no_cache: bool = False,
        timeout_s: float | None = None,
        on_vertex: OnVertex | None = None,
    ) -> Outcome:
        assert timeout_s, "a build without end hangs a run without end"
        assert not target
        assert on_vertex is None
        call = Call(
            dockerfile=(context / "Dockerfile").read_text(encoding="utf-8"),
            output=output,
            contexts=contexts or {},
            secrets=tuple(secrets),
            platform=platform,
            no_cache=no_cache,
            arguments=arguments or {},
        )
        self.calls.append(call)
        found = self.answer(call)
        if isinstance(found, StepFailure):
            return outcome(failure=found)
        for name, text in found.items():
            folder = Path(output.rpartition("dest=")[2])
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return outcome(digest=self.digest)

    def copy(self, source: str, target: str, *, timeout_s: float | None = None) -> Finished:
        assert timeout_s, "a copy without end hangs a run without end"
        self.copied.append((source, target))
        return Finished(
            argv=("docker",),
            code=1 if self.refused else 0,
            stdout="",
            stderr=self.refused,
            seconds=0.1,
            timed_out=False,
        )


def failure(*lines: str, code: int = 1) -> StepFailure:
    return StepFailure(step="[ask 1/1] RUN x", exit=code, lines=lines)


def outcome(*, failure: StepFailure | None = None, digest: str = "") -> Outcome:
    return Outcome(
        ok=failure is None,
        digest=digest,
        vertices=(),
        failure=failure,
        argv=(),
        warnings=(),
        seconds=0.0,
    )
