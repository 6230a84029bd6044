"""Every class of failure by name: the one list, each with its exit code and what to do about it.

Beside these, a smoke test that did not pass has a class of ``smoke.classes`` (exit code 8), and a
scan that could not be made one that begins with ``scan-`` (exit code 14).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Word = Literal[
    "machine",
    "build",
    "identity",
    "secrets",
    "duplicates",
    "size",
    "scan",
    "scan-not-made",
    "smoke",
    "push",
]
# In the order of the pipeline: the first of these that failed gives a run its exit code.
EXIT_CODES: Mapping[str, int] = MappingProxyType(
    {
        "machine": 5,
        "build": 6,
        "identity": 8,
        "secrets": 8,
        "duplicates": 8,
        "size": 16,
        "scan": 7,
        "scan-not-made": 14,
        "smoke": 8,
        "push": 9,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of failure.

    Shape: ``name`` is kebab-case; ``word`` says which part of the pipeline it stops, and with that
    its exit code; ``may_pass`` is whether the same call can go well a moment later.
    """

    name: str
    word: Word
    cause: str
    remedy: str
    may_pass: bool = False

    @property
    def exit_code(self) -> int:
        """What a run with this failure alone ends with."""
        return EXIT_CODES[self.word]


_KINDS = (
    Kind(
        name="disk-full",
        word="machine",
        cause="the disk of the engine's data was full in the middle of a build",
        remedy="`docker buildx prune`, a larger disk, or fewer images at once (`--only`, `--jobs`)",
    ),
    Kind(
        name="engine-lost",
        word="machine",
        cause="the engine, or the client's connection to it, ended in the middle",
        remedy="look at the engine's own log, then run the same command again",
        may_pass=True,
    ),
    Kind(
        name="build-step-failed",
        word="build",
        cause="a program in a step ended with another status than 0",
        remedy="read its last lines; the command after `again:` repeats it",
    ),
    Kind(
        name="build-step-killed",
        word="build",
        cause="a program in a step was killed, mostly for want of memory",
        remedy="more memory for the engine, or fewer images at once (`--jobs 1`)",
    ),
    Kind(
        name="build-timeout",
        word="build",
        cause="an image took longer than three hours",
        remedy="the last lines name what was under way",
    ),
    Kind(
        name="identity-mismatch",
        word="identity",
        cause="what is installed is not what the image's name says; nothing was pushed",
        remedy="`gpulayers lock`, and look at the layer's requirements",
    ),
    Kind(
        name="duplicate-content",
        word="duplicates",
        cause="big content stands twice in an image, or CUDA comes from the base and from packages",
        remedy="a base without CUDA, or one source of that content; else `[budget] duplicate-mb`",
    ),
    Kind(
        name="secret-found",
        word="secrets",
        cause="a secret stands in an image's environment or history",
        remedy="take it out of ENV and ARG; steps get secrets by mounts",
    ),
    Kind(
        name="over-budget",
        word="size",
        cause="an image or a layer is larger than `[budget]` allows",
        remedy="a smaller framework or model, or a larger budget",
    ),
    Kind(
        name="scan-rejected",
        word="scan",
        cause="the policy does not accept what the scan found",
        remedy="update the base or the package, or waive it in scans/policy.toml",
    ),
    Kind(
        name="base-gone",
        word="push",
        cause="the registry that should have the base image does not have it",
        remedy="`gpulayers lock` takes what the base's tag has now",
    ),
    Kind(
        name="model-not-fetched",
        word="push",
        cause="the files of a model could not be had, or are not what the lock says",
        remedy="read what its source said; the next build goes on where this one stopped",
        may_pass=True,
    ),
    Kind(
        name="registry-unreachable",
        word="push",
        cause="a registry does not answer, or only with errors of its own",
        remedy="`gpulayers doctor`; is it up, and are proxy and certificates right?",
        may_pass=True,
    ),
    Kind(
        name="rate-limit",
        word="push",
        cause="a registry wants fewer requests (429)",
        remedy="log in, wait, or use a mirror; `--jobs 2` asks less at once",
        may_pass=True,
    ),
    Kind(
        name="auth-denied",
        word="push",
        cause="a registry does not let this login do that (401 or 403)",
        remedy="`docker login`, or the right to write to that repository",
    ),
    Kind(
        name="auth-expired",
        word="push",
        cause="the registry took part of the push, then refused the login that it had accepted",
        remedy="longer-lived tokens or smaller layers; what was pushed is not pushed again",
        may_pass=True,
    ),
    Kind(
        name="layer-too-big",
        word="push",
        cause="the registry, or a proxy before it, does not take layers of that size (413)",
        remedy="raise its limit, or set `[budget] layer-mb` and make the layer smaller",
    ),
    Kind(
        name="model-not-fetched",
        word="push",
        cause="a model's files could not be had, or are not those that the lock names",
        remedy="run the same command again: what was fetched is kept",
    ),
    Kind(
        name="push-failed",
        word="push",
        cause="a push was begun and broke off, or a tag could not be moved",
        remedy="run the same command again: what is there already is not pushed again",
        may_pass=True,
    ),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _KINDS})


def word_of(cls: str, gate: str) -> str:
    """The word that a gate's failure counts as: that of its class, else the gate's own."""
    kind = KINDS.get(cls)
    return kind.word if kind is not None else gate
