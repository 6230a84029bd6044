"""Entry point of ``python3 tools/devenv COMMAND``."""

import sys
from pathlib import Path

# Before the other imports: an older Python would end in a syntax error that explains nothing.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(
        "error: Python 3.11 or newer is needed, this is {}.{}\n".format(*sys.version_info[:2])
    )
    sys.exit(5)

sys.path[0] = str(Path(__file__).resolve().parents[1])

from devenv.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
