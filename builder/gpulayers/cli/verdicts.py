"""How verdicts look: in words for 80 columns, and as JSON."""

import textwrap
from collections.abc import Iterator

from gpulayers.compat.model import Fix, Judgement, Reason, Used, Word
from gpulayers.versions import Dotted

WIDTH = 80
EXIT_CODES: dict[Word, int] = {
    "ok": 0,
    "ok-minor-compat": 0,
    "needs-forward-compat": 10,
    "broken": 11,
    "unknown": 12,
}


def document(judgement: Judgement) -> dict[str, object]:
    """A verdict as JSON; the keys are part of the public contract."""
    return {
        "verdict": judgement.verdict,
        "summary": judgement.summary,
        "error": judgement.error,
        "reasons": [_reason(reason) for reason in judgement.reasons],
        "fixes": [
            {"change": dict(fix.change), "verdict": fix.verdict, "text": fix.text}
            for fix in judgement.fixes
        ],
        "required_driver": {
            "minimum": _text(judgement.required_driver.minimum),
            "native": _text(judgement.required_driver.native),
        },
    }


def _reason(reason: Reason) -> dict[str, object]:
    return {
        "rule": reason.rule,
        "outcome": reason.outcome,
        "text": reason.text,
        "facts": [
            {"id": used.id, "source": used.source, "confidence": used.confidence}
            for used in reason.facts
        ],
    }


def _text(version: Dotted | None) -> str:
    return version.format() if version is not None else ""


def lines(judgement: Judgement) -> Iterator[str]:
    """A verdict in words: what, why by which facts, what would do, which driver."""
    yield from wrapped(f"{judgement.verdict}: ", judgement.summary)
    if judgement.error:
        yield from wrapped("  you would see: ", judgement.error)
    yield ""
    decisive = judgement.decisive if judgement.verdict != "ok" else ()
    for reason in judgement.reasons:
        yield from reason_lines(reason, whole=reason in decisive)
    if judgement.fixes:
        yield ""
    for fix in judgement.fixes:
        yield from wrapped("  fix      ", fix_text(fix))
    driver = judgement.required_driver
    if driver.minimum is not None:
        native = f"; {driver.native.format()} knows its CUDA" if driver.native is not None else ""
        yield ""
        yield f"  driver   {driver.minimum.format()} or newer{native}"


def reason_lines(reason: Reason, *, whole: bool = True) -> Iterator[str]:
    """A reason with the facts it stands on: ``whole`` with their sources, else their names."""
    ids = "" if whole else " ".join(f"[{used.id}]" for used in reason.facts)
    yield from wrapped(f"  {reason.outcome:<8} ", f"{reason.rule}: {reason.text} {ids}".rstrip())
    for used in reason.facts if whole else ():
        yield from wrapped(" " * 11, _fact(used), longer=2)


def _fact(used: Used) -> str:
    return f"[{used.id}] {used.confidence}: {used.source}"


def fix_text(fix: Fix) -> str:
    """A change and what it would be with it."""
    change = ", ".join(f"{key} {value}" for key, value in fix.change.items())
    if fix.verdict == "ok":
        return f"{change} -> ok"
    return f"{change} -> {fix.verdict}: {fix.text}"


def wrapped(start: str, text: str, *, longer: int = 0) -> list[str]:
    """Lines of at most ``WIDTH``; an address is never cut, so that it can be followed."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * (min(len(start), 11) + longer),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
