"""What a test does where this machine lacks something that it needs."""

import os
from typing import NoReturn

import pytest


def missing(config: pytest.Config, reason: str) -> NoReturn:
    """Skip a test; in CI, and with ``--engine``, fail it: there all of it must be there."""
    if os.environ.get("CI") or config.getoption("--engine", default=False):
        pytest.fail(reason)
    pytest.skip(reason)
