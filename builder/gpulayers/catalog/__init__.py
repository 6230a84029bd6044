"""Every image that we know of, as types, as JSON and as a page, from the project's state folder."""

from gpulayers.catalog.document import format_json
from gpulayers.catalog.make import make
from gpulayers.catalog.model import Catalog, Entry, SharedLayer
from gpulayers.catalog.page import html, write
from gpulayers.catalog.state import State, read, seen_by

__all__ = [
    "Catalog",
    "Entry",
    "SharedLayer",
    "State",
    "format_json",
    "html",
    "make",
    "read",
    "seen_by",
    "write",
]
