"""Keys that several tables have, read the same way."""

from collections.abc import Mapping

from gpulayers.matrix import rules
from gpulayers.matrix.model import AXES
from gpulayers.matrix.shape import Table, nearest, quoted


def env(table: Table) -> Mapping[str, str]:
    """The environment under the key ``env``; tells of variables that no image may have."""
    found = table.strings("env")
    for name, value in found.items():
        if fault := rules.env_fault(name, value):
            table.report.add(
                (*table.path, "env", name),
                wanted="a variable that everyone who pulls the image may read",
                found=fault,
                hint="give secrets to the container when it runs, never to the image",
            )
    return found


def match(table: Table) -> Mapping[str, str]:
    """Axis names to globs under the key ``match``; tells of names that are no axis."""
    found = table.strings("match")
    for axis, glob in found.items():
        path = (*table.path, "match", axis)
        if axis not in AXES:
            table.report.add(path, wanted="an axis", found=quoted(axis), hint=nearest(axis, AXES))
        elif not all(part.strip() for part in glob.split(",")):
            table.report.add(path, wanted="globs with commas between them", found=quoted(glob))
    return found
