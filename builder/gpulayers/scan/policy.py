"""What a channel accepts of a scan: ``scans/policy.toml`` as types, and the verdict on a report."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path

from gpulayers.errors import Problem, ProjectError
from gpulayers.scan.finding import SEVERITIES, Finding, Report, Severity, counts, worst_first

SCHEMA = 1
TOP_KEYS = ("schema", "severity", "not-run", "database")
RULE_KEYS = ("reject", "ignore-unfixed")
NOT_RUN_WORDS = ("accept", "reject")
JUDGED = ("vulnerability", "secret")
_TABLE_LINE = re.compile(r"\s*\[+\s*(?P<name>[^\]]+?)\s*\]+")
_KEY_LINE = re.compile(r"\s*(?P<name>\"[^\"]+\"|[A-Za-z0-9_-]+)\s*=")
_SYNTAX_LINE = re.compile(r"at line (?P<line>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one channel accepts.

    Shape: findings of a severity in ``reject`` are rejected; with ``ignore_unfixed`` not those
    vulnerabilities that no version mends; ``accepts_not_run`` is about scans that could not be
    made.
    """

    channel: str
    reject: frozenset[Severity]
    ignore_unfixed: bool
    accepts_not_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole policy.toml.

    Units: a database older than ``max_age_days`` says nothing about today.
    """

    rules: Mapping[str, Rule]
    max_age_days: int

    def rule(self, channel: str) -> Rule:
        """The rule of a channel.

        Raises: ProjectError: the policy does not know the channel.
        """
        if channel not in self.rules:
            msg = f"the scan policy knows no channel {channel!r}: wanted {_words(self.rules)}"
            raise ProjectError(msg, hint=_nearest(channel, self.rules) or "add it to [severity]")
        return self.rules[channel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a policy says about a report.

    Shape: ``rejected`` is sorted worst first, empty means accepted; ``accepted`` counts the rest of
    all kinds by severity, worst first; ``stale`` says that the database was too old for the answer
    to count, ``age_days`` is None where its age is not known.
    """

    channel: str
    rejected: tuple[Finding, ...]
    accepted: Mapping[Severity, int]
    stale: bool
    age_days: int | None


def judge(report: Report, policy: Policy, channel: str) -> Verdict:
    """Say which findings break the channel's rule: vulnerabilities and secrets are judged.

    Units: the database's age is counted at the time of the scan.
    Raises: ProjectError: the policy does not know the channel.
    """
    rule = policy.rule(channel)
    rejected = [finding for finding in report.findings if _is_rejected(finding, rule)]
    accepted = [finding for finding in report.findings if not _is_rejected(finding, rule)]
    age = report.created - report.database.updated if report.database.updated else None
    ready = report.database.status == "ready"
    return Verdict(
        channel=channel,
        rejected=worst_first(rejected),
        accepted=counts(accepted),
        stale=ready and (age is None or age > timedelta(days=policy.max_age_days)),
        age_days=age.days if age is not None else None,
    )


def _is_rejected(finding: Finding, rule: Rule) -> bool:
    if finding.kind not in JUDGED or finding.severity not in rule.reject:
        return False
    return not (rule.ignore_unfixed and finding.kind == "vulnerability" and not finding.fixed)


def read(path: Path) -> tuple[Policy | None, tuple[Problem, ...]]:
    """Read a policy.toml: the policy, or every problem in it at once and None."""
    try:
        text = path.read_text(encoding="utf-8")
        document: Mapping[str, object] = tomllib.loads(text)
    except OSError as error:
        return None, (_problem(path, 0, "scan policy", "a file", f"{error.strerror}"),)
    except ValueError as error:
        line = _SYNTAX_LINE.search(str(error))
        at = int(line["line"]) if line else 0
        return None, (_problem(path, at, "scan policy", "TOML", str(error)),)
    reader = _Reader(path, text)
    policy = reader.policy(document)
    return (None if reader.problems else policy), tuple(reader.problems)


def _problem(path: Path, line: int, key: str, wanted: str, found: str, hint: str = "") -> Problem:
    return Problem(file=str(path), line=line, key=key, wanted=wanted, found=found, hint=hint)


def _nearest(word: str, known: Sequence[str] | Mapping[str, object]) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _words(known: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(known)


class _Reader:
    """Narrows the document and keeps every problem it meets."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = dict(_lines(text))
        self.problems: list[Problem] = []

    def policy(self, document: Mapping[str, object]) -> Policy:
        self.known(document, TOP_KEYS, "")
        if document.get("schema") != SCHEMA:
            self.wrong("schema", f"schema = {SCHEMA}", document.get("schema"))
        severity = self.table(document, "severity")
        not_run = self.table(document, "not-run")
        rules = [self.rule(channel, severity, not_run) for channel in severity]
        for channel in not_run.keys() - severity.keys():
            hint = _nearest(channel, severity) or "add it to [severity]"
            self.wrong(f"not-run.{channel}", f"a channel of {_words(severity)}", channel, hint)
        if not severity:
            self.wrong("severity", "a rule for each channel", None)
        return Policy(
            rules={rule.channel: rule for rule in rules}, max_age_days=self.max_age(document)
        )

    def rule(
        self, channel: str, severity: Mapping[str, object], not_run: Mapping[str, object]
    ) -> Rule:
        key = f"severity.{channel}"
        row = self.table(severity, channel, key)
        self.known(row, RULE_KEYS, f"{key}.")
        word = not_run.get(channel)
        if word not in NOT_RUN_WORDS:
            self.wrong(f"not-run.{channel}", " or ".join(NOT_RUN_WORDS), word)
        ignore = row.get("ignore-unfixed")
        if not isinstance(ignore, bool):
            self.wrong(f"{key}.ignore-unfixed", "true or false", ignore)
        return Rule(
            channel=channel,
            reject=frozenset(self.severities(row.get("reject"), f"{key}.reject")),
            ignore_unfixed=ignore is True,
            accepts_not_run=word == "accept",
        )

    def severities(self, value: object, key: str) -> Iterator[Severity]:
        if not isinstance(value, list):
            self.wrong(key, "a list of severities", value)
            return
        for word in value:
            match = [name for name in SEVERITIES if name == word]
            if not match:
                hint = _nearest(str(word).upper(), SEVERITIES)
                self.wrong(key, f"one of {_words(SEVERITIES)}", word, hint)
            yield from match

    def max_age(self, document: Mapping[str, object]) -> int:
        database = self.table(document, "database")
        self.known(database, ("max-age-days",), "database.")
        days = database.get("max-age-days")
        if isinstance(days, int) and not isinstance(days, bool) and days > 0:
            return days
        self.wrong("database.max-age-days", "a number of days above 0", days)
        return 0

    def table(self, parent: Mapping[str, object], name: str, key: str = "") -> Mapping[str, object]:
        value = parent.get(name)
        if isinstance(value, dict):
            return value
        self.wrong(key or name, "a table", value)
        return {}

    def known(self, table: Mapping[str, object], keys: Sequence[str], prefix: str) -> None:
        for name in table:
            if name not in keys:
                wanted = f"one of {_words(keys)}"
                self.wrong(f"{prefix}{name}", wanted, "an unknown key", _nearest(name, keys))

    def wrong(self, key: str, wanted: str, found: object, hint: str = "") -> None:
        said = "nothing" if found is None else found if found == "an unknown key" else repr(found)
        self.problems.append(_problem(self.path, self.line(key), key, wanted, str(said), hint))

    def line(self, key: str) -> int:
        """The line of the key, or of the nearest table around it; 0 where neither is written."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return self.lines.get(key, 0)


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Dotted key and line, good enough to point at: tomllib keeps no positions."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _TABLE_LINE.fullmatch(line.partition("#")[0].rstrip()):
            table = found["name"]
            yield table, number
        elif found := _KEY_LINE.match(line):
            name = found["name"].strip('"')
            yield (f"{table}.{name}" if table else name), number
