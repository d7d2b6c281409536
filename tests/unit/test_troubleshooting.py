"""docs/troubleshooting.md knows every reason, and its messages are those of the engine."""

import ast
import re
from enum import Enum

import pytest

from engine.status.outcome import EventReason, Reason
from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### ([^\n]*)\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))
MESSAGES = [heading.strip("`") for heading in SECTIONS if heading.startswith("`")]
FROM_THE_SERVER = {"… is forbidden: …"}


def test_every_reason_has_a_heading_and_there_is_no_other() -> None:
    reasons: list[Enum] = [*Reason, *EventReason]
    told = [heading for heading in SECTIONS if not heading.startswith("`")]
    assert told == [str(reason.value) for reason in reasons]


def test_every_heading_has_a_cause_and_what_to_do() -> None:
    for heading, text in SECTIONS.items():
        assert "**Cause.**" in text, heading
        assert "**What to do.**" in text, heading


@pytest.fixture(scope="module")
def said() -> str:
    """Every literal of the engine, a line each; pieces of one message stand together."""
    found = []
    for path in sorted((ROOT / "engine").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


@pytest.mark.parametrize("message", [m for m in MESSAGES if m not in FROM_THE_SERVER])
def test_every_message_is_one_that_the_engine_prints(message: str, said: str) -> None:
    assert message.removesuffix("…").strip() in said
