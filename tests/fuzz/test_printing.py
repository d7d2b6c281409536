"""What anybody says, through everything that prints it."""

import json

from hypothesis import strategies as st

from engine.cli.output import sanitize_line
from engine.refs import JobKey
from engine.telemetry.redact import Redactor, is_maskable
from tests.fuzz import play
from tests.support.printing import KEY, harmful, print_everything
from tests.unit.strategies import NASTY

_OBEYED = (
    "\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\u202e", "\u2066", "\u200f", "\u061c", "\ud800", "\r",
    "\v", "\n::error::x", "  ::add-mask::", "##[", "##", "#", "[", "##vso[", "##teamcity[",
    "section_end:", "--- ", "+++ ", ":", "…", "...", "\u3000", "\U000e0041", "***",
)  # fmt: skip
_FREE = st.text(st.characters(exclude_characters="§"), max_size=20)
_texts = st.lists(
    st.one_of(st.sampled_from((*_OBEYED, *NASTY)), _FREE),
    max_size=8,
).map("".join)
_secrets = st.lists(_texts.map(lambda text: f"§{text}").filter(is_maskable), max_size=5)
"""With a character that nothing else has: what the engine itself prints isn't masked."""


_PRINTED = 80
"""How many texts are made of each example, nearly."""


@st.composite
def _messages(draw: st.DrawFn) -> tuple[list[str], str, str]:
    secrets = draw(_secrets)
    piece = st.one_of(_texts, st.sampled_from(secrets)) if secrets else _texts
    message = "".join(draw(st.lists(piece, max_size=5)))
    return secrets, message, draw(_texts)


def _print(drawn: tuple[list[str], str, str]) -> None:
    secrets, message, name = drawn
    redact = Redactor()
    for job in (KEY, JobKey("ci", "other")):
        redact.add(secrets, job)
    printed = print_everything(message, redact, name)
    for text in printed.texts:
        text.encode()
        assert not harmful(text)
    for text in printed.as_json.values():
        values = json.dumps(json.loads(text), ensure_ascii=False)
        assert not any(json.dumps(value, ensure_ascii=False)[1:-1] in values for value in secrets)
    for text in printed.for_people.values():
        assert not any(is_maskable(told) and told in text for told in map(sanitize_line, secrets))


def test_no_text_gets_at_a_terminal_a_ci_system_or_a_reader_of_json() -> None:
    play(_messages(), _print, times=_PRINTED)
