"""Entry point of ``python3 tools/trivy_db COMMAND``."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from trivy_db.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
