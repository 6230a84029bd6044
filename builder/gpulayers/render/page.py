"""HTML pages: a template beside this file, filled with plain values, all of them escaped."""

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

MB = 10**6


def html(template: str, values: Mapping[str, object]) -> str:
    """The page of a template (``catalog.html.j2``): the same values, the same bytes."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["mb"] = megabytes
    return environment.get_template(template).render(**values)


def megabytes(size_bytes: int) -> str:
    """Bytes for people: ``1,234 MB`` from 10 MB on, ``1.2 MB`` below, ``4 kB`` below 0.1 MB."""
    if size_bytes >= 10 * MB:
        return f"{size_bytes / MB:,.0f} MB"
    if size_bytes >= MB // 10:
        return f"{size_bytes / MB:.1f} MB"
    return f"{size_bytes / 1000:.1f} kB" if size_bytes >= 1000 else f"{size_bytes} B"  # noqa: PLR2004 - a kilobyte
