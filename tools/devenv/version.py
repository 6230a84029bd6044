"""Versions of programs, compared as numbers."""

import re

Version = tuple[int, ...]

DOCKER_MIN: Version = (25, 0)
BUILDX_MIN: Version = (0, 13)
# 0.68 is the first Trivy that several processes can share one database with.
TRIVY_MIN: Version = (0, 68)
# CVE-2026-33634: these releases were malicious.
TRIVY_REFUSED: frozenset[Version] = frozenset({(0, 69, 4), (0, 69, 5), (0, 69, 6)})


def parse(text: str) -> Version:
    """The first dotted number in a text; empty where there is none."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


def lacks(docker: Version, buildx: Version) -> str:
    """Why an engine that answers cannot be used; empty when it can."""
    if docker < DOCKER_MIN:
        return f"Docker {text(docker) or '(none)'} is older than {text(DOCKER_MIN)}"
    if buildx < BUILDX_MIN:
        return f"buildx {text(buildx) or '(none)'} is older than {text(BUILDX_MIN)}"
    return ""


def is_usable_trivy(version: Version) -> bool:
    """Whether a Trivy of this version may scan."""
    return version >= TRIVY_MIN and version[:3] not in TRIVY_REFUSED
