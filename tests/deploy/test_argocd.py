"""The health check for Argo CD, by Lua 5.1, which Argo CD's own Lua implements."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.argocd import SCRIPT, health_of
from tests.support.kstatus import STATES, Expected, kstatus

PAGE = Path(__file__).parents[2] / "docs" / "gitops.md"


def job(expected: Expected, *, seen: int = 2) -> dict[str, Any]:
    conditions = [
        {"type": name, "status": status, "reason": "Some", "message": "its words"}
        for name, status in expected.conditions.items()
    ]
    status = {"observedGeneration": seen, "conditions": conditions}
    return {"metadata": {"name": "build", "generation": 2}, "status": status}


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_health_and_its_kstatus(state: str) -> None:
    expected = STATES[state]
    assert health_of(job(expected)) == (expected.argocd, "its words")
    assert kstatus(job(expected)) == expected.kstatus


@pytest.mark.parametrize("state", STATES)
def test_what_was_said_of_an_older_spec_counts_for_nothing(state: str) -> None:
    stale = job(STATES[state], seen=1)
    assert health_of(stale)[0] == "Progressing"
    assert kstatus(stale) == "InProgress"


@pytest.mark.parametrize("status", [{"observedGeneration": -1}, {}, None])
def test_an_object_that_no_engine_has_seen_is_progressing(status: Any) -> None:
    obj = {"metadata": {"name": "build", "generation": 1}, "status": status}
    assert health_of(obj) == ("Progressing", "no engine has seen this yet")


def test_the_page_has_the_script_as_it_is() -> None:
    script = SCRIPT[SCRIPT.index("local health") :]
    assert textwrap.indent(script, "    ") in PAGE.read_text(encoding="utf-8")
