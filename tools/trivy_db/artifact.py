"""The layer of an OCI artifact as Trivy's own mirrors carry it, to push with an OCI client."""

import gzip
import io
import tarfile
from pathlib import Path

MEMBERS = ("trivy.db", "metadata.json")


def pack(folder: Path, out: Path) -> None:
    """Write ``db.tar.gz``: two flat members, the same bytes each time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in MEMBERS:
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    with (
        out.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
    ):
        packed.write(raw.getvalue())
