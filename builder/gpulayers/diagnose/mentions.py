"""Lines that speak of an error where there was none: advice, source code, others' requests."""

import re

# A server tells what it answered.
ACCESS = re.compile(r'"[A-Z]+ \S+ HTTP/[\d.]+"\s+\d{3}(?: [A-Z][a-z]\w*(?: [A-Z][a-z]\w*)*)?')
# Source code, of a program or of a difference between two.
CODE = re.compile(
    r"""(?:[\w./-]+\.\w+:\d+:)?\s*[+-]?\s*(?:
        (?:except|if|elif|while|with|def|class)\b.*:\s*$
        | raise\s+[\w.]+\(
        | assert\s
    )""",
    re.VERBOSE,
)
# Our own words for what a machine lacks, where the next way was taken.
PASSED_OVER = re.compile(r"\bpassed over \S+: |\bnot run +\d+ of \d+ |\bnot-run \(")
LEVEL = re.compile(
    r"""(?:^|[\s\[|(<])(?P<word>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)(?=[\s\]|):>]|$)
    | "(?:level|levelname|severity|lvl)":\s*"(?P<json>\w+)"
    | \blevel=(?P<pair>\w+)""",
    re.VERBOSE,
)
QUIET = frozenset({"trace", "debug", "info", "notice"})
# Words that an error has even where it is told quietly, by a program that repeats another one's.
LOUD = re.compile(
    r'(?i:\b(?:failed|failure|fatal|exception|traceback)\b|\berr(?:ors?)?"?[:=])'
    r"|\w(?:Error|Exception): |\bERROR\b"
)


def without_requests(line: str) -> str:
    """A line without the answers that a server gave to others, as long as before."""
    return ACCESS.sub(lambda match: " " * len(match[0]), line) if "HTTP/" in line else line


def is_mention(line: str) -> bool:
    """Whether a line only speaks of errors."""
    return bool(CODE.match(line) or PASSED_OVER.search(line)) or _is_quiet(line)


def _is_quiet(line: str) -> bool:
    level = LEVEL.search(line)
    if level is None:
        return False
    word = level["word"] or level["json"] or level["pair"]
    return word.lower() in QUIET and LOUD.search(line) is None
