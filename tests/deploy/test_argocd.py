"""The health check for Argo CD, by Lua 5.1, which Argo CD's own Lua implements."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import build
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.cluster.settings import Settings
from tests.support.argocd import FILE, SCRIPT, health_of
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


@pytest.mark.programs
@pytest.mark.timeout(600)
def test_argo_cds_own_lua_comes_to_the_same() -> None:
    module = "argocd-lua"
    try:
        chosen = {module: build.Module.of(module)}
        made = build.ensure(Settings.from_environment(), lambda _line: None, chosen)
    except ClusterUnavailable as error:
        do_without(str(error))
    objects = [job(expected, seen=seen) for expected in STATES.values() for seen in (1, 2)]
    objects += [
        {"metadata": {"generation": 1}, "status": status}
        for status in ({"observedGeneration": -1}, {}, None)
    ]
    given = json.dumps(objects)
    command = [made[module] / module, FILE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert [tuple(one) for one in json.loads(done.stdout)] == [health_of(one) for one in objects]


def test_the_page_has_the_script_as_it_is() -> None:
    script = SCRIPT[SCRIPT.index("local health") :]
    assert textwrap.indent(script, "    ") in PAGE.read_text(encoding="utf-8")
