"""What is known of errors in what a step, an engine or a check said: the words of `diagnose`."""

from collections.abc import Iterable, Iterator

from gpulayers import diagnose

# A step's own words for its end, which everybody sees.
PLAIN = frozenset({"step-failed"})


def hints(lines: Iterable[str]) -> Iterator[str]:
    """A line for each known error, causes first: whose fault, why, what mends it."""
    for finding in diagnose.find(lines):
        error = finding.error
        if error.name not in PLAIN:
            yield f"known: {error.name} ({error.fault}): {error.cause}; fix: {error.fix}"
