"""Content that stands twice and growth beyond what is allowed: refused before a tag moves."""

from collections.abc import Mapping

import pytest
from fleet import Built
from tiny import GOOD, Maker, tiny_base, tiny_project

from gpulayers.engine.registry import Registry

__all__ = ["tiny_base", "tiny_project"]

pytestmark = pytest.mark.timeout(900)
BIG = "head -c 3000000 /dev/urandom"


def gate(build: Built, model: str, name: str) -> Mapping[str, object]:
    (image,) = [each for each in build.images.values() if each.cell["model"] == model]
    found = image.gates[name]
    assert isinstance(found, Mapping)
    return found


def test_big_content_that_stands_twice_is_refused_with_its_bytes_and_paths(
    tiny_project: Maker, client: Registry
) -> None:
    twice = f"mkdir -p /out/opt/a && {BIG} >/out/opt/a/one && cp /out/opt/a/one /out/opt/other\n"
    linked = f"mkdir -p /out/opt/b && {BIG} >/out/opt/b/one && ln -s one /out/opt/b/two\n"
    small = f"{BIG} | head -c 900000 >/out/opt/c && cp /out/opt/c /out/opt/d\n"
    project = tiny_project(twice=twice, linked=linked, small=small)
    build = project.build()
    assert build.exit_codes == {8}, build.said
    found = gate(build, "twice", "duplicates")
    assert (found["status"], found["class"]) == ("failed", "duplicate-content")
    assert found["text"] == (
        "duplicates: 3.0 MB stand 2 times: /opt/a/one, /opt/other; "
        "duplicates: 3.0 MB in all, 0 MB are allowed ([budget] duplicate-mb)"
    )
    for model in ("linked", "small"):
        assert gate(build, model, "duplicates")["status"] == "passed"
    assert not [tag for tag in client.tags(f"{project.root}/gpu") if "twice" in tag]
    matrix = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    project.write("matrix.toml", f"{matrix}\n[budget]\nduplicate-mb = 4\n")
    allowed = project.build()
    assert allowed.exit_codes == {0}, allowed.said
    assert gate(allowed, "twice", "duplicates")["status"] == "passed"


def test_cuda_of_the_base_beside_that_of_packages_is_refused_with_the_one_that_is_taken(
    tiny_project: Maker,
) -> None:
    copies = (
        "cd /out && mkdir -p usr/lib opt/venv/lib/nvidia && echo base >usr/lib/libcudart.so.12\n"
        "echo package >opt/venv/lib/nvidia/libcudart.so.12\n"
    )
    linked = (
        "cd /out && mkdir -p usr/lib opt/venv/lib/nvidia\n"
        "echo package >opt/venv/lib/nvidia/libcudart.so.12\n"
        "ln -s /opt/venv/lib/nvidia/libcudart.so.12 usr/lib/libcudart.so.12\n"
    )
    build = tiny_project(copies=copies, linked=linked).build()
    assert build.exit_codes == {8}, build.said
    found = gate(build, "copies", "duplicates")
    assert found["class"] == "duplicate-content"
    assert (
        "libcudart.so.12 stands in the base (/usr/lib/libcudart.so.12) and in a package "
        "(/opt/venv/lib/nvidia/libcudart.so.12): the loader takes"
    ) in str(found["text"])
    assert gate(build, "linked", "duplicates")["status"] == "passed"


def test_growth_beyond_what_is_allowed_is_refused_with_the_layers_that_grew(
    tiny_project: Maker,
) -> None:
    project = tiny_project(lm=GOOD)
    matrix = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    project.write("matrix.toml", f"{matrix}\n[budget]\ngrowth-mb = 2\n")
    first = project.build()
    assert first.exit_codes == {0}, first.said
    assert gate(first, "lm", "size")["text"] == "nothing is released that it could have grown from"
    project.write("models/lm/step.sh", f"{GOOD}{BIG} >/out/opt/models/weights\n")
    heavier = project.build()
    assert heavier.exit_codes == {16}, heavier.said
    text = str(gate(heavier, "lm", "size")["text"])
    assert "MB more than tiny1.0-edge, over the 2 MB of growth that are allowed" in text
    assert "new layers: model-lm 3.0 MB" in text
    project.write("models/lm/step.sh", f"{GOOD}{BIG} | head -c 1000000 >/out/opt/models/weights\n")
    lighter = project.build()
    assert lighter.exit_codes == {0}, lighter.said


def test_a_budget_of_today_is_that_of_images_which_are_there_already(tiny_project: Maker) -> None:
    project = tiny_project(good=GOOD)
    first = project.build()
    assert first.exit_codes == {0}, first.said
    matrix = (project.folder / "matrix.toml").read_text(encoding="utf-8")
    project.write("matrix.toml", f"{matrix}\n[budget]\nimage-mb = 1\n")
    over = project.build()
    assert over.exit_codes == {16}, over.said
    (image,) = over.images.values()
    assert "over the image budget of 1 MB" in image.gates["size"]["text"]
    project.write("matrix.toml", f"{matrix}\n[budget]\nimage-mb = 1000\n")
    within = project.build()
    assert within.exit_codes == {0}, within.said
    (image,) = within.images.values()
    assert (image.status, image.gates["size"]["status"]) == ("cached", "passed")
