"""How much heavier an image is than the one that was released last, and what made it so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpulayers.engine.registry import Manifest
from gpulayers.publish import MB

LABEL = "io.gpulayers"
WHEEL = f"{LABEL}.wheel."
FRAMEWORK = (f"{LABEL}.framework.name", f"{LABEL}.framework.version")
SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The image that a tag points at now; ``labels`` are those of its config."""

    tag: str
    manifest: Manifest
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The image that would take its place; ``steps`` name its layers from the lowest."""

    manifest: Manifest
    steps: Sequence[str]
    labels: Mapping[str, str]


def excess(new: Candidate, old: Released, *, growth_mb: int) -> str:
    """What is wrong with the growth of an image, with the layers and packages; "" where nothing is.

    Units: MB = 10^6 compressed bytes.
    """
    more = new.manifest.size_bytes - old.manifest.size_bytes
    if more <= growth_mb * MB:
        return ""
    before = {layer.digest for layer in old.manifest.layers}
    layers = {
        layer.digest: (layer.size_bytes, step)
        for layer, step in zip(new.manifest.layers, new.steps, strict=True)
        if layer.digest not in before
    }
    after = {layer.digest for layer in new.manifest.layers}
    gone = sum(x.size_bytes for x in old.manifest.layers if x.digest not in after)
    allowed = f"{growth_mb} MB of growth that are allowed"
    texts = [
        f"the image weighs {_mb(more)} more than {old.tag}, over the {allowed}",
        f"new layers: {_listed([f'{s} {_mb(n)}' for n, s in sorted(layers.values())[::-1]])}",
        f"layers of {old.tag} that are gone: {_mb(gone)}",
    ]
    packages = _packages(new.labels, old.labels)
    texts += [f"packages: {_listed(packages)}"] if packages else []
    return "; ".join(texts)


def _packages(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Packages that labels tell of and that are not what they were."""
    was, now = _told(old), _told(new)
    return [
        f"{name} {was[name]} is {version}" if name in was else f"{name} {version} is new"
        for name, version in now.items()
        if was.get(name) != version
    ]


def _told(labels: Mapping[str, str]) -> dict[str, str]:
    found = {k.removeprefix(WHEEL): v for k, v in sorted(labels.items()) if k.startswith(WHEEL)}
    name, version = (labels.get(key, "") for key in FRAMEWORK)
    return {name: version, **found} if name else found


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more if texts else "none"


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / MB:.1f} MB"
