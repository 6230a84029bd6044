"""Values that are hidden stay hidden, however a tool spells them."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulayers import secrecy
from gpulayers.engine import process

VALUE = 'hf_s3cr3t/"wörd"+x=='
LINES = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "spelled",
    [
        VALUE,
        f"token {VALUE}, and {VALUE}",
        quote(VALUE, safe=""),
        json.dumps({"said": VALUE}),
        base64.b64encode(VALUE.encode()).decode(),
        base64.b64encode(f"someone:{VALUE}\n".encode()).decode(),
        base64.urlsafe_b64encode(f"a:{VALUE}".encode()).decode(),
        VALUE.encode().hex(),
    ],
)
def test_a_hidden_value_is_blanked_in_every_spelling(spelled: str) -> None:
    secrecy.hide(f"{VALUE}\n")
    blanked = process.redact(spelled)
    assert secrecy.BLANK in blanked
    assert VALUE not in blanked
    assert secrecy.blank(blanked) == blanked


@given(st.text("abc+/=:", min_size=0, max_size=7), st.text(min_size=10, max_size=90))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_in_base64_no_letter_stays_that_is_the_values_own(before: str, value: str) -> None:
    value = value.strip().encode(errors="ignore").decode()
    if len(value) < 10:
        return
    secrecy.forget()
    secrecy.hide(value)
    text = base64.b64encode(f"{before}{value}".encode()).decode()
    rest = secrecy.blank(text)
    assert secrecy.BLANK in rest
    assert len(rest) <= len(before) * 4 / 3 + len(secrecy.BLANK) + 8


def test_each_line_of_a_key_file_is_blanked_but_not_its_fence() -> None:
    secrecy.hide(LINES)
    assert secrecy.blank("MIIEvQIBADANBgkqhkiG9w0B") == "***"
    assert secrecy.blank("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"
    assert secrecy.blank("in short") == "in short"


def test_long_values_are_blanked_in_the_lines_that_base64_prints() -> None:
    value = "0123456789" * 20
    secrecy.hide(value)
    for line in base64.encodebytes(f"{value}\n".encode()).decode().split()[:-1]:
        assert secrecy.blank(line) == "***"


def test_a_short_value_is_blanked_as_a_word_alone() -> None:
    secrecy.hide("pass")
    assert secrecy.blank("smoke passed; user:pass@host") == "smoke passed; user:***@host"


def test_what_is_too_short_is_left_alone() -> None:
    secrecy.hide("abc")
    assert secrecy.blank("abc") == "abc"


def test_the_longest_value_wins() -> None:
    secrecy.hide("sesame-1")
    secrecy.hide("sesame-1-and-more")
    assert secrecy.blank("sesame-1-and-more") == "***"


def test_nothing_is_hidden_before_something_is() -> None:
    assert secrecy.blank(VALUE) == VALUE
