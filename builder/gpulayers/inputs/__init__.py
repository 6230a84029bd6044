"""What a build takes from the machine and leaves no trace of: CA, logins, indexes, mirrors."""

from gpulayers.inputs.files import Inputs, index_file, machine_environment, prepare, suite_of
from gpulayers.inputs.logins import PROXIES
from gpulayers.inputs.settings import plain, read_pip_settings

__all__ = [
    "PROXIES",
    "Inputs",
    "index_file",
    "machine_environment",
    "plain",
    "prepare",
    "read_pip_settings",
    "suite_of",
]
