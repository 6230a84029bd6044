"""The port to HTTP: what is asked, what comes back, and when to ask again."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Protocol

from gpulayers.engine.registry.refusal import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a registry.

    Shape: ``registry`` is the name whose login is used; ``right`` is what a token must allow
    (``REPOSITORY:pull``), and questions with the same right share one.
    Units: an answer's body of more than ``limit_bytes`` is refused.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    registry: str
    right: str
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswerError(Exception):
    """There was no whole answer; ``again`` tells whether asking again can help."""

    def __init__(self, reason: str, *, again: bool, trouble: Trouble = Trouble.UNREACHABLE) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.trouble = trouble


class Transport(Protocol):
    """Whatever carries a request to a registry, logged in where the registry wants that."""

    def send(self, request: Request) -> Response:
        """The answer, whatever its status.

        Raises: NoAnswerError: there was none.
        """

    def close(self) -> None:
        """Let go of open connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long a question is asked again.

    Units: seconds; the wait starts at ``first_s`` and doubles up to ``cap_s``. A registry that
    asks for a longer wait than ``cap_s`` is not asked again at all: sooner would be rude, and
    waiting for hours helps nobody.
    """

    tries: int = 4
    first_s: float = 0.5
    cap_s: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def ask(self, send: Callable[[], Response]) -> Response:
        """Ask until there is an answer that stays: all but no answer, 429 and 5xx.

        Shape: after the last try, the last answer, whatever it was.
        Raises: NoAnswerError: the last try had no answer.
        """
        for attempt in range(1, self.tries):
            asked_s = 0.0
            try:
                response = send()
            except NoAnswerError as error:
                if not error.again:
                    raise
            else:
                asked_s = self.wait_asked_s(response)
                if not _is_passing(response) or asked_s > self.cap_s:
                    return response
            self.sleep(max(asked_s, min(self.first_s * 2 ** (attempt - 1), self.cap_s)))
        return send()

    def wait_asked_s(self, response: Response) -> float:
        """The wait that a ``Retry-After`` header asks for, in seconds; 0 without one."""
        asked = response.headers.get("retry-after", "").strip()
        if asked.isdigit():
            return float(asked)
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - self.now())
        except ValueError:
            return 0.0


def _is_passing(response: Response) -> bool:
    """Whether an answer may be another one later."""
    limited = response.status == HTTPStatus.TOO_MANY_REQUESTS
    return limited or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
