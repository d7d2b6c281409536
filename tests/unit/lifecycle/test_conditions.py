"""The conditions of a JobSpec object in every state, and what kstatus and kubectl read there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.lifecycle.object_status import CONDITIONS, _head, read_since
from engine.status.outcome import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = ("Ready", "Reconciling", "Stalled", "Finished", "Complete", "Failed", "Suspended")
TABLE = {
    # state: Ready, Reconciling, Stalled, Finished, Complete, Failed, Suspended; kstatus
    "Queued": ("False", "True", "", "False", "", "", "", "InProgress"),
    "Starting": ("False", "True", "", "False", "", "", "", "InProgress"),
    "Running": ("False", "True", "", "False", "", "", "", "InProgress"),
    "Succeeded": ("True", "", "", "True", "True", "", "", "Current"),
    "Failed": ("False", "", "True", "True", "", "True", "", "Failed"),
    "Cancelled": ("False", "", "True", "True", "", "True", "", "Failed"),
    "InvalidSpec": ("False", "", "True", "True", "", "True", "", "Failed"),
    "Suspended": ("True", "", "", "False", "", "", "True", "Current"),
}


def kstatus(item: dict[str, Any]) -> str:
    """As cli-utils' pkg/kstatus/status/generic.go computes it for a kind that it doesn't know."""
    metadata, status = item["metadata"], item.get("status")
    if "deletionTimestamp" in metadata:
        return "Terminating"
    if status is None:
        return "Current"
    if status.get("observedGeneration", metadata["generation"]) != metadata["generation"]:
        return "InProgress"
    for one in status.get("conditions", ()):
        if (one["type"], one["status"]) == ("Reconciling", "True"):
            return "InProgress"
        if (one["type"], one["status"]) == ("Stalled", "True"):
            return "Failed"
    for one in status.get("conditions", ()):
        if one["type"] == "Ready" and one["status"] != "True":
            return "InProgress"
    return "Current"


def made(state: str, before: Any = (), now: datetime = NOW) -> list[dict[str, Any]]:
    head = _head(state, "", "words", 3, read_since({"conditions": before}), now)
    conditions: list[dict[str, Any]] = head["conditions"]
    return conditions


def test_every_state_is_in_the_table() -> None:
    assert CONDITIONS.keys() == TABLE.keys() >= {state.value for state in State}


@pytest.mark.parametrize("state", TABLE)
def test_a_state_has_its_conditions_and_kstatus_reads_them(state: str) -> None:
    *wanted, read = TABLE[state]
    found = {one["type"]: one["status"] for one in made(state)}
    assert [found.get(kind, "") for kind in TYPES] == wanted
    assert {one["observedGeneration"] for one in made(state)} == {3}
    assert all(one["reason"] for one in made(state))
    item = {"metadata": {"generation": 3}, "status": {"observedGeneration": 3}}
    item["status"]["conditions"] = made(state)  # type: ignore[assignment]
    assert kstatus(item) == read
    item["metadata"]["generation"] = 4
    assert kstatus(item) == "InProgress"


def test_an_object_that_no_engine_has_seen_is_in_progress() -> None:
    assert kstatus({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}) == (
        "InProgress"
    )


def test_a_condition_keeps_its_time_as_long_as_its_status_stays() -> None:
    begun = made("Queued")
    later = made("Failed", begun, NOW + timedelta(seconds=5))
    times = {one["type"]: one["lastTransitionTime"] for one in later}
    assert times["Ready"] == begun[0]["lastTransitionTime"]
    assert times["Finished"] > begun[0]["lastTransitionTime"]


def test_of_conditions_that_are_no_ours_nothing_is_kept() -> None:
    strangers = ({"type": "Synced", "status": "True"}, {"type": ["Ready"]}, "Ready", {"type": 1})
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    found = [one | since if isinstance(one, dict) else one for one in strangers]
    assert read_since({"conditions": found}) == {}
    own = {"type": "Ready", "status": "True", **since}
    assert read_since({"conditions": [*found, own]}) == {("Ready", "True"): "2026-01-01T00:00:00Z"}
