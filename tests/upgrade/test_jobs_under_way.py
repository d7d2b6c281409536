"""What 0.1 left half-way is taken over: each job comes to its end, and no pod is made twice."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.upgrade.scenes import FULL, NAMESPACES
from tests.upgrade.stage import BEGINNING, Stage, stage
from tests.upgrade.stored import Object, Stored, by_job, missing_from

UNDER_WAY = Stored.of("v0_1", "under_way", "under_way_before_gates")
HAS_A_POD = {
    "runs",
    "runs-with-a-service",
    "runs-after-a-fallback",
    "is-being-created",
    "is-unscheduled",
    "is-gated",
    "old-runs",
}
MAY_BE_MADE_ANEW = {"is-gated-and-owns-nothing", "is-gated-and-unrecorded"}
STARTS_NOW = {"is-queued", "is-tried-again", "old-is-queued", "waits-for-change"}
MAY_HAVE_RUN = {"old-is-claimed"}

ATTEMPTS = {"is-tried-again": 3, "runs-after-a-fallback": 2}


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path, begin=BEGINNING + timedelta(minutes=1), namespaces=NAMESPACES) as acted:
        UNDER_WAY.restore(acted)
        yield acted


def test_what_runs_waits_or_is_queued_stays_so_until_something_changes(upgraded: Stage) -> None:
    upgraded.sandbox.quota(FULL, pods="0")
    found = by_job(upgraded.until(3).result)
    unmoved = HAS_A_POD - {"is-gated"}
    said = {job: entry for job, entry in UNDER_WAY.once.items() if job[1] in unmoved}
    kept = {
        job: {key: entry[key] for key in ("state", "specHash", "startedAt", "attempts")}
        for job, entry in said.items()
    }
    assert missing_from(found, kept) == []
    for job in ("is-queued", "old-is-queued"):
        assert (found[FULL, job]["state"], found[FULL, job]["reason"]) == (
            "Queued",
            "QuotaExceeded",
        )
    created = _created(upgraded)
    assert set(created).isdisjoint(HAS_A_POD | {"waits-for-change"})


def test_every_job_comes_to_its_end_with_the_pod_that_it_had(upgraded: Stage) -> None:
    upgraded.api.patch("nodes", "sandbox-node", {"metadata": {"labels": {"disk": "ssd"}}})
    with upgraded.meanwhile():
        for pod in upgraded.sandbox.objects("pods"):
            if pod["status"]["phase"] in ("Pending", "Running") and "nodeName" in pod["spec"]:
                name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                upgraded.report(name, _succeeded(pod), namespace)
    status = by_job(upgraded.engine.run("status", "-A", "-o", "json").result)
    ends = {job[1]: (entry["state"], entry["reason"]) for job, entry in status.items()}
    assert ends == {
        name: ("Failed", "PodDeleted") if name in MAY_HAVE_RUN else ("Succeeded", "Succeeded")
        for _, name in UNDER_WAY.once
    }
    created = _created(upgraded)
    assert created.keys() - MAY_BE_MADE_ANEW == STARTS_NOW
    assert set(created.values()) == {1}
    for job, entry in status.items():
        numbers = [attempt["number"] for attempt in entry["attempts"]]
        assert numbers == list(range(1, ATTEMPTS.get(job[1], 1) + 1)), job
    for job, entry in UNDER_WAY.status.items():
        if job[1] in HAS_A_POD | {"is-tried-again"}:
            uids = [attempt["uid"] for attempt in entry["attempts"]]
            assert [attempt["uid"] for attempt in status[job]["attempts"]][: len(uids)] == uids
    upgraded.sandbox.requests.clear()
    upgraded.once()
    assert upgraded.sandbox.requests.writes == []


def _created(acted: Stage) -> Counter[str]:
    """How many pods the engine has made of each job."""
    names = [
        entry.name
        for entry in acted.sandbox.requests.where("create", "pods")
        if 200 <= entry.code < 300
    ]
    return Counter(name.rsplit("-", 2)[0] for name in names)


def _succeeded(pod: Object) -> dict[str, Any]:
    """The pod's status once its main container has ended well."""
    times = {"startedAt": "2026-03-02T09:00:10Z", "finishedAt": "2026-03-02T09:01:05Z"}
    ended = {"state": {"terminated": {"exitCode": 0, "reason": "Completed", **times}}}
    mains = [{**entry, "ready": False, **ended} for entry in pod["status"]["containerStatuses"]]
    return {"phase": "Succeeded", "containerStatuses": mains}
