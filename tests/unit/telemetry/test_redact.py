"""What is secret doesn't come out, in whatever form it stands in a text."""

import base64
import json
import re
import threading
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.refs import JobKey
from engine.telemetry.redact import MASK, Redactor, is_maskable

KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA+/x7\r\n  c2VjcmV0\nab\n-----END KEY-----\n"
ODD = 'p"a\\s s+w/ö<&%\tord'


def redactor(*values: str) -> Redactor:
    redact = Redactor()
    redact.add(values)
    return redact


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


VALUES = st.lists(
    st.text(st.characters(), min_size=4, max_size=12).filter(is_maskable), max_size=60
)


@given(VALUES, st.lists(st.one_of(st.text(max_size=5), st.integers(0, 59)), max_size=8))
def test_no_value_is_left_in_any_text(values: list[str], parts: list[str | int]) -> None:
    redact = redactor(*values)
    chosen = [
        part if isinstance(part, str) else values[part % len(values)] for part in parts if values
    ]
    for piece in redact("".join(chosen)).split(MASK):
        assert not any(value in piece for value in values)


PIECES = st.text("*ab:", max_size=12)


@given(st.lists(PIECES, max_size=8), PIECES, PIECES)
def test_what_is_masked_is_never_masked_again(values: list[str], one: str, other: str) -> None:
    masks = redactor(*values), redactor(*values, one), redactor("***", "is ***: exc", "***x")
    text = masks[0](f"{one}***{other}{''.join(values)}")
    assert all(mask(text) == text for mask in masks)


def test_a_secret_is_masked_in_what_is_said_of_its_job_alone() -> None:
    redact = Redactor()
    redact.add(["forbidden", "is ***: exc"], JobKey("ci-b", "evil"))
    redact.add(["hunter2-is-mine"], JobKey("ci-a", "victim"))
    text = 'pods "victim-1" is forbidden: exceeded quota: q hunter2-is-mine'
    told = redact.of(JobKey("ci-a", "victim"))(text)
    assert told == 'pods "victim-1" is forbidden: exceeded quota: q ***'
    assert redact.of(JobKey("ci-a", "third"))(text) == text
    assert redact(text) == 'pods "victim-1" is ***: exceeded quota: q ***'


def test_a_value_is_masked_until_the_last_of_its_jobs_is_forgotten() -> None:
    redact, first, second = Redactor(), JobKey("ci", "a"), JobKey("ci", "b")
    for job in (first, second):
        redact.add(["hunter2", "hunter3"], job)
    redact.forget(first)
    assert redact("hunter2") == redact.of(second)("hunter2") == MASK
    redact.forget(second)
    assert redact("hunter2") == "hunter2"
    assert redact.size == 0


def test_the_value_before_a_change_is_masked_as_well() -> None:
    redact, job = Redactor(), JobKey("ci", "a")
    redact.add(["hunter2"], job)
    redact.add(["hunter3"], job)
    assert redact.of(job)("hunter2 hunter3") == f"{MASK} {MASK}"


def test_large_values_that_change_fill_no_memory() -> None:
    redact, job = Redactor(), JobKey("ci", "a")
    for number in range(20):
        redact.add([f"{number}" * 100_000], job)
    sizes = redact.size
    redact.add(["x" * 100_000], job)
    assert redact.size <= sizes


@pytest.mark.parametrize(
    "form",
    [
        str,
        coded,
        lambda text: coded(text).rstrip("="),
        lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: repr(text)[1:-1],
        quote,
        quote_plus,
        lambda text: quote(text, safe=""),
        lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote_plus(text)),
    ],
)
@pytest.mark.parametrize("value", ["hunter2", "hunter2\n", ODD, KEY, "päss", "?>?>?>~~~"])
def test_a_value_does_not_come_out_in_any_form(value: str, form: Callable[[str], str]) -> None:
    assert redactor(value)(f"said {form(value)}!") == f"said {MASK}!"


@pytest.mark.parametrize("line", ["MIIEpAIBAAKCAQEA+/x7", "c2VjcmV0"])
def test_a_single_line_of_a_key_does_not_come_out(line: str) -> None:
    redact = redactor(KEY)
    assert redact(f"bad: {line}") == f"bad: {MASK}"
    assert redact(KEY.replace("\r", "").replace("\n", "\r\n").strip()) == MASK
    assert line not in redact(" ".join(KEY.split()))


@pytest.mark.parametrize("before", ["", "c", "ci", "ci:", "anybody:"])
@pytest.mark.parametrize("after", ["", "\n", "@registry", '"}'])
def test_a_value_inside_of_what_was_encoded_does_not_come_out(before: str, after: str) -> None:
    told = redactor("correct-horse")(coded(f"{before}correct-horse{after}"))
    left, right = told.split(MASK)
    assert len(left) * 6 < len(before) * 8 + 6
    assert len(right.rstrip("=")) * 6 < len(after) * 8 + 6 + 6


@pytest.mark.parametrize("end", ["…", "...", "x" * 250])
def test_a_value_that_was_cut_off_does_not_show_how_it_begins(end: str) -> None:
    redact = redactor("correct-horse-battery")
    text = f"{end}said correct-ho" if end.startswith("x") else f"said correct-ho{end}"
    assert "corr" not in redact(text)
    assert redact("she was correct") == "she was correct"


def test_the_longest_of_values_that_begin_alike_is_hidden_whole() -> None:
    assert redactor("pass", "password-1")("password-1 pass") == f"{MASK} {MASK}"


def test_a_value_is_found_among_others_that_begin_like_the_text() -> None:
    redact = redactor("aaaa", "aaaab1", "aaaab3", "aaaac")
    assert redact("aaaab2") == f"{MASK}b2"


def test_values_that_overlap_leave_nothing_of_each_other() -> None:
    assert redactor("abcd", "cdef")("<abcdef>") == f"<{MASK}>"


@pytest.mark.parametrize("value", ["", "no", "abc", " ab ", "    ", "\n\n\n\n"])
def test_values_too_short_to_be_masked_ruin_no_line(value: str) -> None:
    text = "    no news\n\n\n\nabc of  ab "
    assert redactor(value)(text) == text


@given(st.lists(st.text(st.characters(), max_size=40)), st.text(st.characters(), max_size=80))
def test_no_value_and_no_text_makes_the_redactor_raise(values: list[str], text: str) -> None:
    redactor(*values)(text)


def test_half_of_a_character_is_a_value_like_any_other() -> None:
    assert redactor("abc3\ud800")("said abc3\ud800!") == f"said {MASK}!"


def test_thousands_of_values_that_begin_alike_delay_no_line() -> None:
    values = [f"{'registry-token-' * 3}{number:05}" for number in range(8000)]
    began = time.process_time()
    redact = redactor(*values)
    learnt = time.process_time()
    assert learnt - began < 4
    line = f"{'registry-token-' * 3}xyz " * 6
    for _ in range(20):
        redact(line)
    assert time.process_time() - learnt < 1
    assert redact(f"said {values[4711]}") == f"said {MASK}"


def test_values_made_to_share_every_beginning_with_a_line_delay_no_line() -> None:
    line = "a" * 300
    redact = redactor(*(f"{line[:length]}!" for length in range(4, 300)))
    redact.add(line[:length] + "a" for length in range(4, 300, 2))
    began = time.process_time()
    redact(f"{line}b {line}")
    assert time.process_time() - began < 1


def test_values_are_learnt_while_lines_are_masked() -> None:
    redact = redactor("hunter2-first")
    told: list[str] = []

    def print_lines() -> None:
        told.extend(redact("said hunter2-first") for _ in range(300))

    threads = [threading.Thread(target=print_lines) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(300):
        redact.add([f"hunter2-{number:04}"])
    for thread in threads:
        thread.join()
    assert set(told) == {f"said {MASK}"}
