"""How much heavier an image may be than the one that is released."""

from collections.abc import Mapping

import pytest

from gpulayers.engine.registry import Descriptor, Manifest
from gpulayers.growth import Candidate, Released, excess

MB = 10**6


def manifest(layers: Mapping[str, int]) -> Manifest:
    found = tuple(
        Descriptor(
            media_type="", digest=f"sha256:{name}", size_bytes=size, platform=None, annotations={}
        )
        for name, size in layers.items()
    )
    config = Descriptor(
        media_type="", digest="sha256:config", size_bytes=0, platform=None, annotations={}
    )
    return Manifest(
        raw=b"", media_type="", digest="sha256:x", config=config, layers=found, annotations={}
    )


OLD = Released(
    tag="torch2.8.0",
    manifest=manifest({"os": 30 * MB, "cublas1": 400 * MB, "torch1": 900 * MB}),
    labels={
        "io.gpulayers.framework.name": "torch",
        "io.gpulayers.framework.version": "2.8.0",
        "io.gpulayers.wheel.nvidia-cublas-cu12": "12.8.4.1",
    },
)


def candidate(**sizes: int) -> Candidate:
    return Candidate(
        manifest=manifest({"os": 30 * MB, **sizes}),
        steps=["base", *sizes],
        labels={
            "io.gpulayers.framework.name": "torch",
            "io.gpulayers.framework.version": "2.9.0",
            "io.gpulayers.wheel.nvidia-cublas-cu12": "12.8.4.1",
            "io.gpulayers.wheel.nvidia-nvshmem-cu12": "3.3.20",
        },
    )


@pytest.mark.parametrize(
    ("torch2", "is_fine"), [(800, True), (900, True), (950, True), (951, False)]
)
def test_growth_up_to_what_is_allowed_is_fine(torch2: int, is_fine: bool) -> None:
    new = candidate(cublas1=400 * MB, torch2=torch2 * MB)
    assert (excess(new, OLD, growth_mb=50) == "") is is_fine


def test_more_names_the_layers_biggest_first_and_the_packages() -> None:
    new = candidate(cublas1=400 * MB, torch2=1000 * MB, nvshmem=120 * MB)
    assert excess(new, OLD, growth_mb=0) == (
        "the image weighs 220.0 MB more than torch2.8.0, over the 0 MB of growth that are allowed; "
        "new layers: torch2 1000.0 MB, nvshmem 120.0 MB; "
        "layers of torch2.8.0 that are gone: 900.0 MB; "
        "packages: torch 2.8.0 is 2.9.0, nvidia-nvshmem-cu12 3.3.20 is new"
    )


def test_of_many_layers_the_biggest_are_named_and_the_rest_counted() -> None:
    new = candidate(**{f"x{n}": n * 100 * MB for n in range(1, 10)})
    text = excess(new, OLD, growth_mb=10)
    assert "new layers: x9 900.0 MB, x8 800.0 MB" in text
    assert "x4 400.0 MB and 3 more; " in text
