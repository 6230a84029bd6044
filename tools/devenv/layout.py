"""Where everything of this checkout lies."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from devenv.talk import DevenvError

# sun_path of sockaddr_un holds 108 bytes with the closing zero (man 7 unix).
SOCKET_PATH_BYTES_MAX = 107


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The folders of one checkout.

    Shape: all but ``run`` lie below ``checkout``; ``run`` holds the sockets and is short.
    """

    checkout: Path
    run: Path

    @property
    def engine(self) -> Path:
        """The one git-ignored folder that all of this lives in."""
        return self.checkout / ".engine"

    @property
    def bin(self) -> Path:
        """Links to the programs, put first on PATH."""
        return self.engine / "bin"

    @property
    def packages(self) -> Path:
        """One folder for each unpacked package, named as the package."""
        return self.engine / "root"

    @property
    def apt(self) -> Path:
        """The private apt state, one folder for each suite."""
        return self.engine / "apt"

    @property
    def log(self) -> Path:
        """Log files of the servers."""
        return self.engine / "log"

    @property
    def data(self) -> Path:
        """The engine's images and build cache."""
        return self.engine / "data"

    @property
    def registry(self) -> Path:
        """The registry's blobs."""
        return self.engine / "registry"

    @property
    def cdi(self) -> Path:
        """CDI device files that the engine reads."""
        return self.engine / "cdi"

    @property
    def docker_config(self) -> Path:
        """DOCKER_CONFIG of the private engine's client."""
        return self.engine / "docker"

    @property
    def env_file(self) -> Path:
        """The KEY=VALUE lines that the other tools read."""
        return self.engine / "env"

    @property
    def daemon_config(self) -> Path:
        """The private engine's configuration."""
        return self.engine / "daemon.json"

    @property
    def registry_config(self) -> Path:
        """The registry's configuration."""
        return self.engine / "registry.yml"

    @property
    def venv(self) -> Path:
        """The virtual environment of the project."""
        return self.checkout / ".venv"

    @property
    def exec_root(self) -> Path:
        """The engine's run-time state and its containerd's sockets."""
        return self.run / "exec"

    @property
    def socket(self) -> Path:
        """The engine's socket."""
        return self.run / "docker.sock"

    @property
    def pid_file(self) -> Path:
        """The engine's own PID file."""
        return self.run / "docker.pid"

    @property
    def name(self) -> str:
        """A name that no other checkout on this machine has."""
        return self.run.name


def run_folder(checkout: Path, base: Path) -> Path:
    """The short folder for sockets: a hash in its name keeps two checkouts apart."""
    return base / f"gpulayers-{hashlib.sha256(os.fsencode(checkout)).hexdigest()[:8]}"


def of_checkout(checkout: Path) -> Layout:
    """The layout of a checkout; nothing is made yet."""
    base = Path("/run")
    if not os.access(base, os.W_OK):
        base = Path(tempfile.gettempdir())
    return Layout(checkout=checkout, run=run_folder(checkout, base))


def make_run_folder(layout: Layout) -> None:
    """Make the folder for sockets, open to nobody else.

    Raises: DevenvError: its path is too long for a socket, or it belongs to somebody else.
    """
    deepest = layout.exec_root / "containerd" / "containerd-debug.sock"
    if len(os.fsencode(deepest)) > SOCKET_PATH_BYTES_MAX:
        msg = f"{deepest} is too long for a socket ({SOCKET_PATH_BYTES_MAX} bytes at most)"
        raise DevenvError(msg, hint="set TMPDIR to a short folder, or make /run writable")
    layout.run.mkdir(mode=0o700, exist_ok=True)
    # Below a shared temporary folder anyone could have made it first and would own our sockets.
    if layout.run.is_symlink() or layout.run.stat().st_uid != os.geteuid():
        msg = f"{layout.run} belongs to somebody else"
        raise DevenvError(msg, hint="remove it, or set TMPDIR to a folder of your own")
