"""Ask the service whether it is well: exit status 0 when it is."""

import sys
import urllib.request
from http import HTTPStatus

if __name__ == "__main__":
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/healthy", timeout=2) as answer:
        sys.exit(0 if answer.status == HTTPStatus.OK else 1)
