"""What puts images together, made out of the project for one run of `gpulayers build`."""

import click

from gpulayers import documents
from gpulayers.assembly import Assembly
from gpulayers.build import Builder
from gpulayers.cli.loaded import Loaded
from gpulayers.compose import Composer
from gpulayers.engine.docker import DockerEngine
from gpulayers.engine.registry import Registry
from gpulayers.inside import Checks
from gpulayers.plan.model import Image, Step

FOLDER = "steps"


def make(found: Loaded, builder: Builder, engine: DockerEngine, registry: Registry) -> Assembly:
    """The assembly of a run.

    Raises: ProjectError: a check that looks at every image is not there.
    """
    from gpulayers.render import dockerfile

    texts = dockerfile.check_texts(found.library)
    templates = dockerfile.environment(found.library)

    def write_step(image: Image, step: Step) -> str:
        name = f"{FOLDER}/{step.stage}.Dockerfile"
        (builder.rendered / FOLDER).mkdir(parents=True, exist_ok=True)
        documents.write(builder.rendered / name, dockerfile.step_text(image, step, templates))
        return name

    def warn(line: str) -> None:
        click.echo(f"warning: {line}", err=True)

    return Assembly(
        composer=Composer(registry=registry, name=f"{builder.root}/{builder.name}", warn=warn),
        checks=Checks(
            engine=engine,
            scripts={"identity": texts["identity"], "duplicates": texts["duplicates"]},
        ),
        builder=builder,
        write_step=write_step,
    )
