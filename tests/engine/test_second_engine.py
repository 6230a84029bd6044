"""An image can be pulled by its tag from an engine that has nothing, and runs there."""

import pytest
from fleet import Built, Project

from gpulayers.engine import process

pytestmark = pytest.mark.timeout(1500)


def test_an_empty_engine_pulls_an_image_by_its_tag_and_runs_it(
    mini: tuple[Project, Built], empty_engine: str
) -> None:
    def docker(*words: str) -> str:
        done = process.run(["docker", "--host", empty_engine, *words], timeout_s=300)
        assert done.ok, done.stderr
        return done.stdout.strip()

    image = mini[1].images["cupy13.6.0-debian13-alpha"]
    tag = f"{image.repository}:{image.tags[-1]}"
    assert docker("images", "--quiet") == ""
    docker("pull", "--quiet", tag)
    assert image.digest in docker("image", "inspect", "--format={{.RepoDigests}}", tag)
    code = "import cupy; print(cupy.__version__, open('/opt/models/alpha/words.txt').read())"
    said = docker("run", "--rm", "--network=none", tag, "python", "-c", code)
    assert said == "13.6.0 alpha 1"
