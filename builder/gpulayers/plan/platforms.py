"""What one run can build of a plan for several platforms."""

from collections.abc import Sequence

from gpulayers.errors import ProjectError
from gpulayers.plan.model import Image


def demand_one(images: Sequence[Image]) -> None:
    """Refuse to build images of several platforms under one tag: the last would take it.

    They can be planned, locked and rendered; the index that joins their manifests is not made yet.
    Raises: ProjectError: names the tag and the platforms.
    """
    first: dict[str, Image] = {}
    for image in images:
        twin = first.setdefault(image.tag, image)
        if twin is not image:
            both = f"{twin.platform.format()} and {image.platform.format()}"
            msg = f"the tag {image.tag} is wanted for {both}, and images are built for one"
            raise ProjectError(msg, hint="name one platform in images.platforms to build")
