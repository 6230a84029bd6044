"""One plain Dockerfile an image: a stage a step, linked onto the base, checked before a push."""

import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)

from gpulayers.errors import ProjectError
from gpulayers.layer import Library
from gpulayers.matrix.model import HealthCheck
from gpulayers.plan.keys import CHECKS, EPOCH
from gpulayers.plan.model import Image, Step
from gpulayers.render import mounts

BANNER = (
    "# Made by gpulayers from matrix.toml, matrix.lock.toml and layers/. Do not edit.\n"
    "# Build by hand: docker buildx bake --file docker-bake.json {target}\n"
)
# What an expression in a template can raise beside Jinja2's own errors.
OF_TEMPLATES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
IDENTITY, DUPLICATES = CHECKS
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


def text(image: Image, templates: Environment) -> str:
    """The whole Dockerfile of an image: the same plan, the same bytes.

    Raises: ProjectError: a layer's template does not render.
    """
    stages = [stage_text(step, templates) for step in (image.tools, *image.steps)]
    check = _identity(image, *(_script(templates, name) for name in CHECKS))
    parts = [BANNER.format(target=image.target), *stages, _final(image), check]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def stage_text(step: Step, templates: Environment) -> str:
    """The stages of one step.

    Raises: ProjectError: the layer's template does not render.
    """
    name = f"{step.layer}/{step.template.name}"
    try:
        made = templates.get_template(name).render(**step.values)
    except (TemplateError, *OF_TEMPLATES) as error:
        msg = f"{_place(error, step)}: the template does not render: {_reason(error)}"
        raise ProjectError(msg, hint="docs/layers.md lists what a template is given") from error
    wrong = next(mounts.faults(made, step.secrets), "")
    if wrong:
        msg = f"layers/{name}: {wrong}"
        raise ProjectError(msg, hint="docs/private.md says how a step asks for a secret")
    return made


def _place(error: Exception, step: Step) -> str:
    """File and line of what went wrong: of the template, or of one that it includes.

    Source: Jinja2 puts the template's own file and line into the traceback (its documentation,
    "Frequently Asked Questions", read 2026-12-01); only syntax errors carry them.
    """
    found = (step.template, 0)
    if isinstance(error, TemplateSyntaxError):
        found = (Path(error.filename or step.template), error.lineno)
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.endswith(".j2"):
            found = (Path(frame.filename), frame.lineno or 0)
    file, line = found
    # As from the folder of layers: a template of a layer, or one beside the layers that they share.
    is_own = (file.parent / "layer.toml").is_file()
    shown = f"{file.parent.name}/{file.name}" if is_own else file.name
    return f"layers/{shown}:{line}" if line else f"layers/{shown}"


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateNotFound):
        return f"there is no template {error}"
    return str(error) or type(error).__name__


def step_text(image: Image, step: Step, templates: Environment) -> str:
    """A Dockerfile that makes one step of an image alone: the layer that it is in every image.

    Raises: ProjectError: a layer's template does not render.
    """
    stages = [stage_text(one, templates) for one in (image.tools, *image.steps)]
    alone = f"FROM scratch AS step\nCOPY --link --from={step.stage} /out/ /\n"
    return "\n".join(part.rstrip("\n") + "\n" for part in (*stages, alone))


def check_texts(library: Library) -> Mapping[str, str]:
    """The scripts that look at every image from inside, by name.

    Raises: ProjectError: one is not there.
    """
    templates = environment(library)
    return {name.removesuffix(".py"): _script(templates, name) for name in CHECKS}


def _script(templates: Environment, name: str) -> str:
    """A check of the image as it stands: Python has braces of its own."""
    try:
        loader = templates.loader
        return loader.get_source(templates, name)[0] if loader is not None else ""
    except TemplateNotFound as error:
        msg = f"wanted layers/{name}, which checks every image, found none"
        raise ProjectError(msg, hint="install gpulayers again: it comes with it") from error


def _final(image: Image) -> str:
    copies = [f"COPY --link --from={step.stage} /out/ /" for step in image.steps]
    config = image.config
    lines = ["FROM base AS final", *copies]
    lines += _pairs("ENV", config.env)
    lines += _pairs("LABEL", config.labels)
    # Last of what makes a layer: the folder is there, so it is an empty one.
    lines += [f"WORKDIR {config.workdir}"] if config.workdir else []
    lines += [f"EXPOSE {' '.join(config.ports)}"] if config.ports else []
    lines += _health(config.health_check) if config.health_check is not None else []
    lines += [f"USER {config.user}"]
    lines += [f"ENTRYPOINT {json.dumps(config.entrypoint)}"] if config.entrypoint else []
    lines += [f"CMD {json.dumps(config.command)}"]
    return "\n".join(lines)


def _health(check: HealthCheck) -> Sequence[str]:
    options = {
        "interval": f"{check.interval_s}s",
        "timeout": f"{check.timeout_s}s",
        "start-period": f"{check.start_s}s",
        "retries": str(check.retries),
    }
    words = " ".join(f"--{name}={value}" for name, value in options.items())
    return [f"HEALTHCHECK {words} \\\n    CMD {json.dumps(check.command)}"]


def _pairs(word: str, values: Mapping[str, str]) -> Sequence[str]:
    pairs = [f"{name}={_quote(value)}" for name, value in sorted(values.items())]
    return [f"{word} " + " \\\n    ".join(pairs)] if pairs else []


def _quote(value: str) -> str:
    # Dockerfile expands $ in these; a value is meant as it stands.
    return json.dumps(value, ensure_ascii=False).replace("$", "\\$")


def _identity(image: Image, identity: str, duplicates: str) -> str:
    """The checks that stop the push: their marker is a layer of the image, and fails with them."""
    expected = json.dumps(asdict(image.expected), sort_keys=True)
    return f"""\
FROM final AS identity
USER 0:0
RUN /opt/venv/bin/python -B - {_shell(expected)} <<'IDENTITY'
{identity.rstrip()}
IDENTITY
RUN /opt/venv/bin/python -B - {_shell(expected)} <<'DUPLICATES'
{duplicates.rstrip()}
DUPLICATES
RUN mkdir -p /out{MARKER.rpartition("/")[0]} && touch /out{MARKER} && \\
    find /out -exec touch -hd @{EPOCH} {{}} +

FROM final AS image
COPY --link --from=identity /out/ /
"""


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
