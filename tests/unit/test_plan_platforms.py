"""Building is for one platform at a time; planning is for all."""

from dataclasses import replace

import pytest
from lock_samples import AMD64, DEMO, cells_of, lock_for, packaged_library, read_matrix

from gpulayers.errors import ProjectError
from gpulayers.layer import Library
from gpulayers.lock import wanted
from gpulayers.matrix.model import Matrix
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground, Plan
from gpulayers.plan.platforms import demand_one
from gpulayers.refs import Platform

ARM64 = Platform("linux", "arm64")


def planned(matrix: Matrix, library: Library) -> Plan:
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    return make(
        Ground(matrix=matrix, library=library, lock=lock, root="r.example/acme"), cells_of(matrix)
    )


def on(*platforms: Platform) -> Matrix:
    matrix = read_matrix(DEMO / "matrix.toml")
    return replace(matrix, images=replace(matrix.images, platforms=platforms))


def test_images_of_two_platforms_are_planned_and_not_built() -> None:
    plan = planned(on(AMD64, ARM64), packaged_library())
    assert len({image.target for image in plan.images}) == len(plan.images)
    assert {image.platform for image in plan.images} == {AMD64, ARM64}
    with pytest.raises(ProjectError, match=r"is wanted for linux/amd64 and linux/arm64"):
        demand_one(plan.images)


def test_images_of_one_platform_are_built() -> None:
    plan = planned(on(ARM64), packaged_library())
    assert plan.images
    demand_one(plan.images)


def test_a_framework_without_wheels_for_a_platform_has_no_image_there() -> None:
    plan = planned(on(AMD64, ARM64), packaged_library())
    names = {image.cell.framework.format() for image in plan.images if image.platform == ARM64}
    assert names == {"cupy==13.6.0"}
    assert {image.cell.framework.name for image in plan.images} == {"cupy", "onnxruntime-gpu"}
