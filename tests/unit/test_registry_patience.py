"""Waiting: how long, how often, and when not at all."""

import pytest

from gpulayers.engine.registry import NoAnswerError, Patience, Response
from gpulayers.engine.registry.hosts import api_root, is_loopback, may_send_login
from gpulayers.engine.registry.refusal import TEXT_MAX, clean

OK = Response(status=200, headers={}, body=b"")


def limited(after: str) -> Response:
    return Response(status=429, headers={"retry-after": after}, body=b"")


class Answers:
    """Gives its answers one after the other and counts."""

    def __init__(self, *answers: Response | NoAnswerError) -> None:
        self.answers = list(answers)
        self.waits: list[float] = []

    def send(self) -> Response:
        found = self.answers.pop(0)
        if isinstance(found, NoAnswerError):
            raise found
        return found

    def ask(self, **how: float) -> Response:
        tries = int(how.get("tries", 4))
        patience = Patience(
            tries=tries,
            first_s=how.get("first_s", 1.0),
            cap_s=how.get("cap_s", 30.0),
            sleep=self.waits.append,
            now=lambda: 1_000_000_000.0,
        )
        return patience.ask(self.send)


def test_a_wait_that_is_asked_for_is_kept() -> None:
    answers = Answers(limited("7"), OK)
    assert answers.ask() is OK
    assert answers.waits == [7.0]


def test_a_date_in_the_header_is_a_wait_too() -> None:
    answers = Answers(limited("Sun, 09 Sep 2001 01:46:52 GMT"), OK)
    answers.ask()
    assert answers.waits == [12.0]


def test_a_wait_beyond_the_cap_ends_the_asking() -> None:
    answers = Answers(limited("3600"), OK)
    assert answers.ask().status == 429
    assert answers.waits == []


@pytest.mark.parametrize("after", ["", "soon", "-1"])
def test_a_header_that_says_nothing_leaves_the_usual_wait(after: str) -> None:
    answers = Answers(limited(after), OK)
    answers.ask()
    assert answers.waits == [1.0]


def test_waits_double_up_to_the_cap_and_the_last_answer_stays() -> None:
    down = Response(status=503, headers={}, body=b"")
    answers = Answers(*[down] * 5)
    assert answers.ask(tries=5, cap_s=3.0) is down
    assert answers.waits == [1.0, 2.0, 3.0, 3.0]


def test_silence_to_the_end_is_raised() -> None:
    silence = NoAnswerError("no answer within 30 s", again=True)
    with pytest.raises(NoAnswerError, match="within 30 s"):
        Answers(silence, silence).ask(tries=2)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("localhost:5000", True),
        ("[::1]:5000", True),
        ("localhost.evil.org", False),
        ("127.0.0.1.evil.org:80", False),
        ("10.0.0.1:5000", False),
        ("ghcr.io", False),
    ],
)
def test_only_this_machine_is_loopback(*, host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    assert api_root(host, insecure=()).startswith("http://" if loopback else "https://")


@pytest.mark.parametrize(
    ("realm", "asked_by", "may"),
    [
        ("https://auth.lan/token", "https://r.lan/v2/", True),
        ("http://auth.lan/token", "https://r.lan/v2/", False),
        ("http://auth.lan/token", "http://r.lan/v2/", True),
        ("http://127.0.0.1:9/token", "https://r.lan/v2/", True),
    ],
)
def test_a_login_is_not_sent_in_plain_http_for_an_https_registry(
    *, realm: str, asked_by: str, may: bool
) -> None:
    assert may_send_login(realm, asked_by=asked_by) is may


def test_foreign_text_is_one_short_line_without_secrets() -> None:
    text = clean("a\n b https://s/x?X-Amz-Signature=abc basic dXNlcjpwYXNzd29yZA== " + "z" * 500)
    assert text.startswith("a b https://s/x?… basic *** zzz")
    assert len(text) == TEXT_MAX + 1
