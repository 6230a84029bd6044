"""Steps, labels and environment of fetched models: inside the image, or named in it."""

import json
import shlex
from collections.abc import Iterator, Mapping

from gpulayers.lock.model import LockedModel
from gpulayers.lock.weights import tree
from gpulayers.lock.weights.tree import CHECK, Group, Tree
from gpulayers.matrix.model import ArtifactModel, FetchedModel, HubModel
from gpulayers.plan.keys import Draft, step
from gpulayers.plan.model import Ground, Step
from gpulayers.refs import Platform

FOLDER = "/opt/models"
LABEL = "io.gpulayers.model"
TREES = "trees"


def fetched(ground: Ground, name: str) -> tuple[FetchedModel, LockedModel] | None:
    """A model with its entry in the lock, where it is one that is fetched."""
    model = ground.matrix.models.get(name)
    if not isinstance(model, HubModel | ArtifactModel):
        return None
    return model, ground.lock.model(name)


def tree_of(ground: Ground, model: FetchedModel, locked: LockedModel) -> Tree:
    """How the files of a model are handed to a build."""
    recipe = ground.matrix.recipe
    # The other half of the layers is for wheels.
    return tree.plan(
        locked,
        layer_mb=recipe.model_layer_mb,
        most=max(1, recipe.max_layers // 2),
        check=model.check,
    )


def count(ground: Ground, name: str) -> int:
    """How many steps the files of a model are; 1 for all that are no fetched one."""
    found = fetched(ground, name)
    if found is None or found[0].place == "reference":
        return 1
    return len(tree_of(ground, *found).groups)


def steps(
    ground: Ground, name: str, platform: Platform, *, below: Step, python: Step
) -> Iterator[Step]:
    """The steps of a model, if it is one that is fetched.

    Shape: ``below`` is the step with the tools, which is all that files need: so they are the same
    step under each Python. A check needs ``python``.
    """
    found = fetched(ground, name)
    if found is None:
        return
    model, locked = found
    if model.place == "reference":
        yield _reference_step(ground, model, locked, platform, below)
        return
    whole = tree_of(ground, model, locked)
    for number, group in enumerate(whole.groups, 1):
        is_last = number == len(whole.groups)
        checked = is_last and model.check is not None
        title = f"model-{name}" if is_last else f"model-{name}-{number}"
        yield step(
            Draft(
                name=title,
                layer=ground.library.single("model"),
                ground=ground,
                platform=platform.format(),
                under=(python if checked else below,),
                context=(f"model-{name}", ground.models / TREES / whole.name),
                context_digest=whole.name if checked else group.key,
                size_bytes=group.size_bytes,
                values=_values(model, group, venv=f"{python.stage}-venv" if checked else ""),
            )
        )


def _values(model: FetchedModel, group: Group, *, venv: str) -> dict[str, str | tuple[str, ...]]:
    check = shlex.quote(f"{CHECK}/{model.check.name}") if venv and model.check is not None else ""
    return {
        "venv": venv or "tools",
        "wheels": (),
        "model": model.name,
        "context": f"model-{model.name}",
        "group": group.key,
        "reference": "",
        "leave_out": (),
        "check": check,
    }


def _reference_step(
    ground: Ground, model: FetchedModel, locked: LockedModel, platform: Platform, below: Step
) -> Step:
    return step(
        Draft(
            name=f"model-{model.name}",
            layer=ground.library.single("model"),
            ground=ground,
            platform=platform.format(),
            under=(below,),
            values={
                "venv": "tools",
                "wheels": (),
                "model": model.name,
                "context": "",
                "group": "",
                "reference": json.dumps(reference(locked), indent=1, ensure_ascii=True),
                "leave_out": (),
                "check": "",
            },
        )
    )


def reference(locked: LockedModel) -> Mapping[str, object]:
    """What an image says of a model that it does not hold."""
    return {
        "schema": 1,
        "name": locked.name,
        "source": locked.source,
        "revision": locked.revision,
        "digest": locked.digest,
        "size": locked.size_bytes,
        "files": [
            {"name": file.name, "sha256": file.sha256, "size": file.size_bytes}
            for file in locked.files
        ],
    }


def labels(ground: Ground, name: str) -> dict[str, str]:
    """Labels about a fetched model: where it is from, at what, and which files are outside."""
    found = fetched(ground, name)
    if found is None:
        return {}
    model, locked = found
    own = {
        f"{LABEL}.place": model.place,
        f"{LABEL}.source": locked.source,
        f"{LABEL}.revision": locked.revision,
        f"{LABEL}.digest": locked.digest,
        f"{LABEL}.size": str(locked.size_bytes),
    }
    if model.place == "reference":
        files = reference(locked)["files"]
        own[f"{LABEL}.files"] = json.dumps(files, separators=(",", ":"))
    return own


def env(ground: Ground, name: str) -> dict[str, str]:
    """The variable that says where the files of a fetched model are, or are to be put."""
    return {"GPULAYERS_MODEL": f"{FOLDER}/{name}"} if fetched(ground, name) is not None else {}
