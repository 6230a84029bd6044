"""Reads what smoke scripts print: one JSON object a line, and anything else beside it."""

import json

from gpulayers.engine.process import Finished
from gpulayers.smoke.model import CallError, Check, Line, ScriptResult

SAID_LINES = 20


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _error(value: object) -> CallError | None:
    if not isinstance(value, dict):
        return None
    code = value.get("code")
    return CallError(
        call=_text(value.get("call")),
        code=code if isinstance(code, int) else 0,
        name=_text(value.get("name")),
    )


def line(text: str) -> Line | None:
    """The result that a line holds, or None where it is none (a library's own chatter)."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or "check" not in value or "ok" not in value:
        return None
    return Line(
        check=_text(value["check"]),
        ok=value["ok"] is True,
        value=_text(value.get("value")),
        unit=_text(value.get("unit")),
        expected=_text(value.get("expected")),
        skip=_text(value.get("skip")),
        stand_in=value.get("stand_in") is True,
        error=_error(value.get("error")),
    )


def result(check: Check, finished: Finished) -> ScriptResult:
    """What became of a script, from how its program ended and what it said."""
    found = [(text, line(text)) for text in finished.stdout.splitlines()]
    other = [text for text, parsed in found if parsed is None]
    said = [text.rstrip() for text in (*other, *finished.stderr.splitlines()) if text.strip()]
    return ScriptResult(
        script=check.format(),
        code=finished.code,
        seconds=finished.seconds,
        timed_out=finished.timed_out,
        lines=tuple(parsed for _, parsed in found if parsed is not None),
        said=tuple(said[-SAID_LINES:]),
    )
