"""Content keys: the same inputs, the same key, on every machine."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpulayers.layer import LayerDef
from gpulayers.lock.model import Package
from gpulayers.plan.model import Step, Value

# Raised when the same templates and values would give other bytes: every step is then built anew.
RECIPE = 1
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


def slug(text: str) -> str:
    """The text as a stage or bake target may be called."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A step before it has a key; ``base`` is the digest of the OS base below it, or ""."""

    name: str
    layer: LayerDef
    values: Mapping[str, Value]
    platform: str
    under: Sequence[Step] = ()
    base: str = ""
    context: tuple[str, Path] | None = None
    context_digest: str = ""
    size_bytes: int = 0
    more_templates: Sequence[Path] = field(default_factory=tuple)


def step(draft: Draft) -> Step:
    """The step with its key: over its templates, values, context, and the steps it is made upon."""
    values = {**draft.values, "epoch": EPOCH}
    key = of_value(
        {
            "recipe": RECIPE,
            "templates": [of_file(p) for p in (draft.layer.template, *draft.more_templates)],
            "values": values,
            "under": [one.key for one in draft.under],
            "platform": draft.platform,
            "base": draft.base,
            "context": draft.context_digest,
        }
    )
    stage = f"{slug(draft.name)}-{key[:8]}"
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
    )
