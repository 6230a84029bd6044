"""How long planning and rendering of large fleets take, beside what every rival does with one.

``python bench/planning.py`` plans 10,000 cells of about 20 steps each, renders 500 images, and
lets Jinja2 alone fill a template of the same text for these 500, as a script of one's own would.
Medians and ratios go to ``bench/results/planning.json``. Exit status 1 when a limit is passed.
The lock is made up (names, hashes and sizes), its shape is a real one.
"""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jinja2
from looking import ten_thousand

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "unit"))

from lock_samples import cells_of, lock_for, packaged_library, read_matrix  # noqa: E402

from gpulayers.lock import wanted  # noqa: E402
from gpulayers.plan import make  # noqa: E402
from gpulayers.plan.model import Ground, Plan  # noqa: E402
from gpulayers.render import files  # noqa: E402
from gpulayers.render.bake import Surroundings  # noqa: E402

ROUNDS = 3
RESULT = HERE / "results" / "planning.json"
IMAGES = 500
# The project's own aims.
MOST_PLAN_S, MOST_RENDER_S = 5.0, 5.0
# Above the threshold of a step of its own.
BIG = 200_000_000
ROOT = "localhost:5000"


def ground(folder: Path) -> Ground:
    """What a plan of all cells is made from; every wheel is a step of its own."""
    file = folder / "matrix.toml"
    file.write_text(ten_thousand(), encoding="utf-8")
    matrix, library = read_matrix(file), packaged_library()
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    wheels = {name: replace(wheel, size_bytes=BIG) for name, wheel in lock.wheels.items()}
    return Ground(matrix=matrix, library=library, lock=replace(lock, wheels=wheels), root=ROOT)


def timed(work: Callable[[], object]) -> float:
    """The median of the seconds that some work takes."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def by_hand(texts: list[str]) -> None:
    """The same texts out of one template each, with nothing looked at or checked."""
    for text in texts:
        template = jinja2.Template("FROM {{ base }}\n{% raw %}" + text + "{% endraw %}")
        template.render(base="debian:12")


def main() -> int:
    """Measure, write, and say what was found."""
    with tempfile.TemporaryDirectory() as name:
        whole = ground(Path(name))
        cells = cells_of(whole.matrix)
        plans: list[Plan] = []
        planning = timed(lambda: plans.append(make.make(whole, cells)))
        plan = plans[-1]
        part = make.make(whole, [image.cell for image in plan.images[:: len(cells) // IMAGES]])
        part = replace(part, images=part.images[:IMAGES])
        around = Surroundings(root=ROOT, name="gpu", project=Path(name))
        texts = list(files.render(part, whole.library, around).values())
        rendering = timed(lambda: files.render(part, whole.library, around))
        alone = timed(lambda: by_hand(texts))
    steps = statistics.mean(len(image.steps) for image in plan.images)
    found = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "rounds": ROUNDS,
        "images_planned": len(plan.images),
        "steps_of_an_image": round(steps, 1),
        "images_rendered": len(part.images),
        "median_seconds": {
            "plan": round(planning, 2),
            "render": round(rendering, 2),
            "jinja2 alone": round(alone, 2),
        },
        "render_to_jinja2_alone": round(rendering / alone, 2),
        "limits": {"plan_s": MOST_PLAN_S, "render_s": MOST_RENDER_S},
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))
    return int(planning > MOST_PLAN_S or rendering > MOST_RENDER_S)


if __name__ == "__main__":
    sys.exit(main())
