"""Why a set of wheels cannot be: the two requirements that disagree, in one line."""

import re
from collections.abc import Iterable

from gpulayers.lock.model import Wheel

MARKER = re.compile(r"\{[^}]*\}")
# uv's words (0.8 to 0.13), their lines run together.
NO_WHEEL = re.compile(r"(\S+) has no wheels with a matching .*? tag \(e\.g\., `([^`]+)`\)")
PYTHON = re.compile(r"does not satisfy Python(\S+) and you require (\S+),")
PAIR = re.compile(r"(\S+) depends on (\S+) and (\S+) depends on (\S+), we can conclude")
FIRST = re.compile(r"Because (?P<what>.*?) and you require (?P<who>\S+?),")
MOST = 300
# Packages that exist once for each CUDA major, and of which an image can use one.
CORE = ("nvidia-cuda-runtime", "nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cudnn", "nvidia-nccl")
SUFFIX = re.compile(r"(?P<name>.+)-cu(?P<major>\d+)")


def reason(said: str) -> str:
    """The heart of what uv says about requirements that no set of wheels fits."""
    text = " ".join(MARKER.sub("", said).partition("hint:")[0].split())
    if match := NO_WHEEL.search(text):
        return f"{match[1]} has no wheel for {match[2]}"
    if match := PYTHON.search(text):
        return f"{match[2]} wants Python{match[1]}"
    pairs = PAIR.findall(text)
    if pairs:
        one, its, other, theirs = pairs[-1]
        return f"{one} wants {its}, {other} wants {theirs}"
    match = FIRST.search(text)
    return f"{match['what']}, wanted is {match['who']}" if match else text[-MOST:]


def foreign(wheels: Iterable[Wheel], major: int) -> str:
    """What libraries of another CUDA major are among wheels, or "".

    Shape: resolvers see no conflict there, as each major has packages of its own name; from 13 on
    those of the toolkit have none in it, and their version says it.
    Source: names of the packages that ``cuda-toolkit`` 12.9 and 13.0 require (PyPI, 2026-12-01).
    """
    found = [wheel for wheel in sorted(wheels) if _major(wheel) not in {None, major}]
    return ", ".join(f"{wheel.name}=={wheel.version}" for wheel in found)


def replaced(below: Iterable[Wheel], wheels: Iterable[Wheel]) -> str:
    """The first wheel that would stand in the place of another file of a layer below, or "".

    Shape: of one version there are several files, one for each CUDA: another one is another build.
    """
    there = {wheel.name: wheel.file for wheel in below}
    for wheel in sorted(wheels):
        stays = there.get(wheel.name, wheel.file)
        if stays != wheel.file:
            return f"it would bring {wheel.file}, the layers below have {stays}, which stays"
    return ""


def _major(wheel: Wheel) -> int | None:
    match = SUFFIX.fullmatch(wheel.name)
    if match is not None and match["name"] in CORE:
        return int(match["major"])
    # cuDNN and NCCL have a version of their own, and always the suffix.
    return int(wheel.version.split(".")[0]) if wheel.name in CORE[:3] else None
