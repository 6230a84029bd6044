"""A small Hugging Face: repositories, revisions, files by range, and the ways it can fail.

Made after what the real client asks and after the Hub's documentation of its API
(https://huggingface.co/docs/hub/api, read 2026-12-01); the real one was not asked.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

from registry_server import Asked, Reply, Server

COMMIT = "5f91d94bd9cd7190a9f3216ff93cd1dd95f2c7be"
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
API = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)/revision/(?P<revision>[^?]+)(\?.*)?")
FILE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>[^?]+)")


@dataclass
class Hub:
    """One repository, ``acme/tiny``; files that end in .safetensors are kept as LFS does.

    Shape: ``served`` replaces the bytes of a file after it was listed; ``cuts`` are bytes after
    which the next answers of a file end early; ``busy`` is how often 429 is said first;
    ``token`` is what a client must show, "" for nothing.
    """

    files: dict[str, bytes]
    served: dict[str, bytes] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    busy: int = 0
    token: str = ""
    refs: tuple[str, ...] = ("main", "v1.0", COMMIT)
    server: Server = field(init=False)

    @contextmanager
    def open(self) -> Iterator[str]:
        """Serve it; the endpoint's address."""
        with Server(self.answer) as self.server:
            yield f"http://{self.server.host}"

    def ranges(self, name: str) -> list[str]:
        """The ranges that were asked of a file, "" for all of it."""
        return [
            asked.headers.get("range", "")
            for asked in self.server.asked
            if asked.method == "GET" and asked.path.endswith(f"/{name}")
        ]

    def answer(self, asked: Asked) -> Reply:
        if self.busy:
            self.busy -= 1
            return Reply(status=429, headers={"Retry-After": "1"})
        if self.token and asked.login != f"Bearer {self.token}":
            return _refused(401, "RepoNotFound", "Invalid username or password.")
        if match := API.fullmatch(asked.path):
            return self._listing(match["repo"], unquote(match["revision"]))
        if match := FILE.fullmatch(asked.path):
            return self._file(asked, match["revision"], unquote(match["name"]))
        return _refused(404, "RepoNotFound", "Repository not found")

    def _listing(self, repo: str, revision: str) -> Reply:
        if repo != "acme/tiny":
            return _refused(404, "RepoNotFound", "Repository not found")
        if revision not in self.refs:
            return _refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        siblings = [_sibling(name, data) for name, data in self.files.items()]
        document = {"id": repo, "modelId": repo, "sha": COMMIT, "siblings": siblings}
        headers = {"Content-Type": "application/json"}
        return Reply(status=200, body=json.dumps(document).encode(), headers=headers)

    def _file(self, asked: Asked, revision: str, name: str) -> Reply:
        if revision not in self.refs or name not in self.files:
            return _refused(404, "EntryNotFound", "Entry not found")
        data = self.served.get(name, self.files[name])
        etag = _etag(name, self.files[name])
        headers = {
            "ETag": f'"{etag}"',
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(len(data)),
            "X-Linked-Etag": f'"{etag}"',
            "Accept-Ranges": "bytes",
        }
        cuts = self.cuts.get(name, [])
        cut = cuts.pop(0) if cuts and asked.method == "GET" else None
        match = RANGE.fullmatch(asked.headers.get("range", ""))
        if match is None:
            return Reply(status=200, body=data, headers=headers, cut=cut)
        begin = int(match[1])
        end = int(match[2]) if match[2] else len(data) - 1
        headers["Content-Range"] = f"bytes {begin}-{end}/{len(data)}"
        return Reply(status=206, body=data[begin : end + 1], headers=headers, cut=cut)


def _etag(name: str, data: bytes) -> str:
    if name.endswith(".safetensors"):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _sibling(name: str, data: bytes) -> dict[str, object]:
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": oid}
    if name.endswith(".safetensors"):
        sha256 = hashlib.sha256(data).hexdigest()
        entry["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 134}
    return entry


def _refused(status: int, code: str, message: str) -> Reply:
    headers = {"X-Error-Code": code, "X-Error-Message": message}
    return Reply(status=status, body=json.dumps({"error": message}).encode(), headers=headers)
