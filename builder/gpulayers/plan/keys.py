"""Content keys: the same inputs, the same key, on every machine."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.layer import LayerDef
from gpulayers.lock.model import Package
from gpulayers.plan.model import Ground, Step, Value

# Raised when the same templates and values would give other bytes: every step is then built anew.
RECIPE = 1
INCLUDE = re.compile(r"""\{%[-+]?\s*(?:include|import|extends|from)\s+["']([^"']+)["']""")
# What looks at an image inside its build, in this order; files of the layers' folders.
CHECKS = ("identity.py", "duplicates.py")
EPOCH = 315532800  # 1980-01-01: zip files, and so wheels, cannot say an earlier time


def of_value(value: object) -> str:
    """The hash of a JSON-like value, as 64 hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Package):
        return [value.name, value.version, value.sha256]
    msg = f"no key for {value!r}"
    raise TypeError(msg)


def of_file(path: Path) -> str:
    """The hash of a file, or "" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def checks(folders: Sequence[Path]) -> tuple[str, ...]:
    """A hash of each check, as the first of the folders has it; "" where none does."""
    return tuple(
        next((of_file(path / name) for path in folders if (path / name).is_file()), "")
        for name in CHECKS
    )


def of_templates(first: Path, ground: Ground) -> tuple[str, ...]:
    """The hashes of a template and of those that it includes; each is read once a plan."""
    found = ground.hashes.get(first)
    if found is None:
        found = tuple(of_file(path) for path in templates(first, ground.library.folders))
        ground.hashes[first] = found
    return found


def templates(first: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """A template and those that it includes, through others too, as they are found in folders.

    Shape: ``folders`` in the order in which they are looked through. One that is not there is left
    out: rendering tells of it.
    """
    found = [first]
    for path in found:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for name in INCLUDE.findall(text):
            places = [folder / name for folder in folders if (folder / name).is_file()]
            found += [place for place in places[:1] if place not in found]
    return tuple(found)


def slug(text: str) -> str:
    """The text as a stage or bake target may be called."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A step before it has a key.

    Shape: ``ground`` knows where its templates come from; ``base`` is the digest of the OS base
    below it, or ""; ``stage`` is "" for a name of its own in each version of it.
    """

    name: str
    layer: LayerDef
    ground: Ground
    values: Mapping[str, Value]
    platform: str
    under: Sequence[Step] = ()
    base: str = ""
    context: tuple[str, Path] | None = None
    context_digest: str = ""
    size_bytes: int = 0
    stage: str = ""


def step(draft: Draft) -> Step:
    """The step with its key: over its templates, values, context, and the steps it is made upon."""
    values = {**draft.values, "epoch": EPOCH}
    key = of_value(
        {
            "recipe": RECIPE,
            "templates": of_templates(draft.layer.template, draft.ground),
            "values": values,
            "under": [one.key for one in draft.under],
            "platform": draft.platform,
            "base": draft.base,
            "context": draft.context_digest,
        }
    )
    stage = draft.stage or f"{slug(draft.name)}-{key[:8]}"
    return Step(
        name=draft.name,
        layer=draft.layer.name,
        stage=stage,
        key=key,
        template=draft.layer.template,
        values={**values, "stage": stage},
        needs=tuple(one.stage for one in draft.under),
        context=draft.context,
        size_bytes=draft.size_bytes,
        secrets=draft.layer.secrets,
    )
