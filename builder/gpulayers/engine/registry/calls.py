"""The questions of the distribution API, as calls.

Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md (read 2025-12-01).
"""

import re
from dataclasses import replace
from urllib.parse import quote, urljoin, urlsplit

from gpulayers.engine.registry.asking import Call
from gpulayers.engine.registry.model import INDEX_TYPES, MANIFEST_TYPES, Descriptor
from gpulayers.engine.registry.transport import Response
from gpulayers.refs import ImageRef

PAGE = 1000
_ACCEPT = {"Accept": ", ".join(sorted(INDEX_TYPES | MANIFEST_TYPES))}
_NEXT = re.compile(r'<(?P<url>[^>]+)>\s*;\s*rel="?next"?')


def look_up_manifest(ref: ImageRef) -> Call:
    """HEAD: what a reference points at."""
    return _on_manifest(ref, "HEAD", f"look up {ref.format()}")


def read_manifest(ref: ImageRef) -> Call:
    """GET: the bytes of a manifest or index."""
    return _on_manifest(ref, "GET", f"read the manifest of {ref.format()}")


def delete_manifest(ref: ImageRef) -> Call:
    """DELETE: a manifest by its digest."""
    return replace(_on_manifest(ref, "DELETE", f"delete {ref.format()}"), action="delete")


def write_manifest(ref: ImageRef, raw: bytes, media_type: str) -> Call:
    """PUT: these bytes under the reference's tag or digest."""
    call = _on_manifest(ref, "PUT", f"write {ref.format()}")
    return replace(call, action="push", body=raw, headers={"Content-Type": media_type})


def look_up_blob(ref: ImageRef, digest: str) -> Call:
    """HEAD: whether a blob is there."""
    return _call(ref, "HEAD", f"blobs/{digest}", f"look up the blob {digest} of {ref.name}")


def read_blob(ref: ImageRef, digest: str, limit_bytes: int) -> Call:
    """GET: a blob's bytes."""
    call = _call(ref, "GET", f"blobs/{digest}", f"read the blob {digest} of {ref.name}")
    return replace(call, limit_bytes=limit_bytes)


def read_part(ref: ImageRef, blob: Descriptor, begin: int, end: int) -> Call:
    """GET: the bytes of a blob from ``begin`` up to but not at ``end``."""
    call = read_blob(ref, blob.digest, blob.size_bytes)
    return replace(call, headers={"Range": f"bytes={begin}-{end - 1}"})


def open_upload(ref: ImageRef, what: str) -> Call:
    """POST: an upload, whose address comes back."""
    return replace(_call(ref, "POST", "blobs/uploads/", what), action="push", body=b"")


def mount_blob(ref: ImageRef, digest: str, source: ImageRef) -> Call:
    """POST: a blob of another repository, or an upload where it is not given."""
    call = open_upload(ref, f"mount the blob {digest} of {source.name} into {ref.name}")
    query = f"mount={digest}&from={quote(source.repository, safe='/')}"
    return replace(call, path=f"{call.path}?{query}")


def end_upload(place: Call, data: bytes, digest: str) -> Call:
    """PUT: all bytes of a blob at once, to the place of an open upload."""
    return replace(
        place,
        method="PUT",
        path=f"{place.path}{'&' if '?' in place.path else '?'}digest={digest}",
        headers={"Content-Type": "application/octet-stream"},
        body=data,
    )


def cancel_upload(place: Call) -> Call:
    """DELETE: an open upload."""
    return replace(place, method="DELETE", body=None)


def list_tags(ref: ImageRef) -> Call:
    """GET: the first page of a repository's tags."""
    return _call(ref, "GET", f"tags/list?n={PAGE}", f"list the tags of {ref.name}")


def reach(registry: str) -> Call:
    """GET: the root of the API."""
    what = f"reach the registry {registry}"
    return Call(what=what, method="GET", registry=registry, repository="", path="")


def place_of(call: Call, opened: Response, *, asked: str) -> Call:
    """The address that a registry gave an upload; ``asked`` is the one that was asked."""
    url = urlsplit(urljoin(asked, opened.headers.get("location", "")))
    if url.netloc == urlsplit(asked).netloc:
        # A registry behind a proxy may not know that it is spoken to in https.
        return replace(call, path=url._replace(scheme=urlsplit(asked).scheme).geturl())
    # Another host is not shown this registry's login.
    return replace(call, registry=url.netloc, path=url.geturl())


def next_page(call: Call, response: Response, *, asked: str) -> Call | None:
    """The call for the page after an answer, or None after the last page."""
    match = _NEXT.search(response.headers.get("link", ""))
    return replace(call, path=urljoin(asked, match["url"])) if match else None


def _on_manifest(ref: ImageRef, method: str, what: str) -> Call:
    path = f"manifests/{ref.digest or ref.tag or 'latest'}"
    return replace(_call(ref, method, path, what), headers=_ACCEPT)


def _call(ref: ImageRef, method: str, path: str, what: str) -> Call:
    return Call(
        what=what,
        method=method,
        registry=ref.registry,
        repository=ref.repository,
        path=f"{ref.repository}/{path}",
    )
