"""What a build takes from the machine and leaves no trace of: CA, logins, indexes, mirrors."""

from gpulayers.inputs.files import Inputs, machine_environment, prepare, suite_of
from gpulayers.inputs.logins import PROXIES
from gpulayers.inputs.settings import read_pip_settings

__all__ = ["PROXIES", "Inputs", "machine_environment", "prepare", "read_pip_settings", "suite_of"]
