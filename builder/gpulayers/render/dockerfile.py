"""One plain Dockerfile an image: a stage a step, linked onto the base, checked before a push."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError

from gpulayers.errors import ProjectError
from gpulayers.layer import Library
from gpulayers.plan.keys import EPOCH
from gpulayers.plan.model import Image, Plan, Step

BANNER = (
    "# Made by gpulayers from matrix.toml, matrix.lock.toml and layers/. Do not edit.\n"
    "# Build by hand: docker buildx bake --file docker-bake.json {target}\n"
)
IDENTITY = "identity.py"
MARKER = "/usr/share/gpulayers/identity-checked"


def environment(library: Library) -> Environment:
    """Where templates come from: the project's own folder first, then the packaged one."""
    return Environment(  # noqa: S701 - Dockerfiles are not HTML
        loader=ChoiceLoader([FileSystemLoader(folder) for folder in library.folders]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def text(image: Image, plan: Plan, templates: Environment) -> str:
    """The whole Dockerfile of an image: the same plan, the same bytes.

    Raises: ProjectError: a layer's template does not render.
    """
    stages = [stage_text(step, templates) for step in (plan.tools, *image.steps)]
    script = templates.get_template(IDENTITY).render()
    parts = [BANNER.format(target=image.target), *stages, _final(image), _identity(image, script)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def stage_text(step: Step, templates: Environment) -> str:
    """The stages of one step.

    Raises: ProjectError: the layer's template does not render.
    """
    name = f"{step.layer}/{step.template.name}"
    try:
        return templates.get_template(name).render(**step.values)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"layers/{name}:{line}" if line else f"layers/{name}"
        msg = f"{where}: the template does not render: {error}"
        raise ProjectError(msg, hint="docs/layers.md lists what a template is given") from error


def _final(image: Image) -> str:
    copies = [f"COPY --link --from={step.stage} /out/ /" for step in image.steps]
    config = image.config
    lines = ["FROM base AS final", *copies]
    lines += _pairs("ENV", config.env)
    lines += _pairs("LABEL", config.labels)
    lines += [f"USER {config.user}"]
    lines += [f"ENTRYPOINT {json.dumps(config.entrypoint)}"] if config.entrypoint else []
    lines += [f"CMD {json.dumps(config.command)}"]
    return "\n".join(lines)


def _pairs(word: str, values: Mapping[str, str]) -> Sequence[str]:
    pairs = [f"{name}={_quote(value)}" for name, value in sorted(values.items())]
    return [f"{word} " + " \\\n    ".join(pairs)] if pairs else []


def _quote(value: str) -> str:
    # Dockerfile expands $ in these; a value is meant as it stands.
    return json.dumps(value, ensure_ascii=False).replace("$", "\\$")


def _identity(image: Image, script: str) -> str:
    """The check that stops the push: its marker is a layer of the image, and it fails with it."""
    expected = json.dumps(asdict(image.expected), sort_keys=True)
    return f"""\
FROM final AS identity
USER 0:0
RUN /opt/venv/bin/python -B - {_shell(expected)} <<'IDENTITY'
{script.rstrip()}
IDENTITY
RUN mkdir -p /out{MARKER.rpartition("/")[0]} && touch /out{MARKER} && \\
    find /out -exec touch -hd @{EPOCH} {{}} +

FROM final AS image
COPY --link --from=identity /out/ /
"""


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
