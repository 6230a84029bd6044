"""The checks of a build, in a container: for an image that was put together without one."""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from gpulayers.engine.docker import Container
from gpulayers.errors import ToolError
from gpulayers.plan.model import Image
from gpulayers.record import Gate
from gpulayers.refs import ImageRef
from gpulayers.smoke.run import Engine, without_app

Inside = Literal["identity", "duplicates"]
CLASSES: Mapping[Inside, str] = {
    "identity": "identity-mismatch",
    "duplicates": "duplicate-content",
}
PASSED = "put together out of steps that were there, checked in a container"
# As long as a client that is killed leaves its container behind.
LIFETIME_S = 1800
TIMEOUT_S = 600.0
PYTHON = "/opt/venv/bin/python"
ROOT = "0:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What looks at an image from inside: the texts of the scripts, in their order."""

    engine: Engine
    scripts: Mapping[Inside, str]

    def judge(self, image: Image, ref: ImageRef) -> dict[Inside, Gate]:
        """What the checks say; the first that fails ends it, as it ends a build.

        Raises: RemoteError: the image cannot be pulled; ToolError: no container could be made of
            it, or a check came to no end.
        """
        self.engine.pull(ref, image.platform)
        container = self._container(image, ref)
        try:
            started = self.engine.start(container)
            if not started.ok:
                msg = f"{image.tag}: no container for its checks: {' '.join(started.tail(3))}"
                raise ToolError(msg, hint="`gpulayers doctor` looks at the engine")
            return self._judged(image, container.name)
        finally:
            self.engine.remove(container.name)

    def _judged(self, image: Image, name: str) -> dict[Inside, Gate]:
        expected = json.dumps(asdict(image.expected), sort_keys=True)
        found: dict[Inside, Gate] = {}
        for check, text in self.scripts.items():
            begin = time.monotonic()
            argv = (PYTHON, "-B", "-", expected)
            done = self.engine.execute(name, argv, stdin=text, timeout_s=TIMEOUT_S)
            if done.timed_out:
                msg = f"{image.tag}: {check} came to no end in {TIMEOUT_S:.0f} s"
                raise ToolError(msg, hint="look at the engine: its disk, its memory")
            lines = [line for line in done.tail(20) if line.startswith(f"{check}:")]
            found[check] = Gate(
                status="passed" if done.ok else "failed",
                cls="" if done.ok else CLASSES[check],
                text=PASSED if done.ok else "; ".join(lines or done.tail(1)),
                seconds=time.monotonic() - begin,
            )
            if not done.ok:
                break
        return found

    def _container(self, image: Image, ref: ImageRef) -> Container:
        config = self.engine.image_config(ref)
        front = without_app(config.entrypoint)
        home = config.env.get("HOME", "/")
        return Container(
            name=f"gpulayers-inside-{secrets.token_hex(6)}",
            image=ref,
            platform=image.platform,
            # As in the build: everything can be read, whoever the image runs as.
            user=ROOT,
            capabilities=("DAC_READ_SEARCH",),
            env={},
            tmpfs=tuple(sorted({"/tmp", home} - {"/"})),  # noqa: S108 - inside the container
            gpu=(),
            entrypoint=front[0] if front else "",
            command=(*front[1:], PYTHON, "-c", f"import time; time.sleep({LIFETIME_S})"),
        )
