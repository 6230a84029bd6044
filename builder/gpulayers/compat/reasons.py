"""Making reasons: short, and always with the rows that they stand on."""

from gpulayers.compat.model import Reason, RuleName, Used, Word
from gpulayers.facts.model import Origin


def passed(rule: RuleName, text: str, *origins: Origin, word: Word = "ok") -> Reason:
    """A rule that lets it run, natively or by a lesser word."""
    return Reason(rule=rule, outcome="pass", word=word, text=text, facts=used(*origins))


def failed(
    rule: RuleName, text: str, *origins: Origin, error: str = "", word: Word = "broken"
) -> Reason:
    """A rule that does not let it run."""
    return Reason(
        rule=rule, outcome="fail", word=word, text=text, facts=used(*origins), error=error
    )


def warned(rule: RuleName, text: str, *origins: Origin) -> Reason:
    """Something to know that decides nothing."""
    return Reason(rule=rule, outcome="warn", word="ok", text=text, facts=used(*origins))


def unknown(rule: RuleName, text: str, *origins: Origin) -> Reason:
    """Where the facts do not reach."""
    return Reason(rule=rule, outcome="unknown", word="unknown", text=text, facts=used(*origins))


def used(*origins: Origin) -> tuple[Used, ...]:
    """The rows, each once."""
    return tuple(Used.of(origin) for origin in dict.fromkeys(origins))
