"""Pod Security: what the engine says offline is what the API server's own admission says."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api.model import Limits
from engine.podsecurity import Level, evaluate
from engine.reconcile.rendering import RenderConfig, render_attempt
from engine.render.templates import Templates
from tests.cluster.cluster import Cluster
from tests.support.client import Client, Obj
from tests.support.http import Reply
from tests.support.pod_security import REASONS, Case, cases, ephemeral_cases, restricted_pod
from tests.unit.builders import load

pytestmark = [pytest.mark.cluster, pytest.mark.since(1, 36)]

CASES = tuple(cases())
EXAMPLE = Path(__file__).parents[2] / "examples/restricted/job.yaml"
LEVELS = (Level.BASELINE, Level.RESTRICTED)


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Client:
    return Client.from_kubeconfig(cluster.kubeconfig)


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    return Level(request.param)


@pytest.fixture(scope="module")
def namespace(client: Client, level: Level) -> Iterator[str]:
    """A namespace whose pods the API server itself holds to the level."""
    name = f"pod-security-{level}-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    made = client.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    assert made.code == 201, made.body
    yield f"/api/v1/namespaces/{name}"
    client.delete(f"/api/v1/namespaces/{name}")


def test_every_pod_is_judged_as_by_the_api_server(
    client: Client, namespace: str, level: Level
) -> None:
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    told = {
        case.name: reasons(client.post(f"{namespace}/pods", case.pod, **query)) for case in CASES
    }
    assert told == {case.name: offline(level, case) for case in CASES}


def test_every_ephemeral_container_is_judged_as_by_the_api_server(
    client: Client, namespace: str, level: Level
) -> None:
    pod = restricted_pod()
    pod["spec"]["schedulingGates"] = [{"name": "engine.test/never"}]
    made = client.post(f"{namespace}/pods", pod)
    assert made.code == 201, made.body
    found = tuple(ephemeral_cases())
    told = {}
    for case in found:
        container = case.pod["spec"]["ephemeralContainers"]
        patch: Obj = {"spec": {"ephemeralContainers": container}}
        where = f"{namespace}/pods/x/ephemeralcontainers"
        told[case.name] = reasons(client.patch(where, patch, dryRun="All"))
    assert told == {case.name: offline(level, case) for case in found}


def test_the_example_for_restricted_is_taken_as_the_engine_sends_it(
    client: Client, namespace: str
) -> None:
    (job,) = load(EXAMPLE.read_text(encoding="utf-8"), namespace=namespace.rpartition("/")[2]).jobs
    pod = render_attempt(RenderConfig(Templates(), "default", Limits()), job, 1, {}, None).pod
    assert pod["spec"]["schedulingGates"]
    reply = client.post(f"{namespace}/pods", pod, dryRun="All", fieldValidation="Strict")
    assert reply.code == 201, reply.body


def reasons(reply: Reply) -> set[str]:
    """The controls by which the server refuses a pod, in its own words; none if it takes it."""
    if reply.code in (200, 201):
        return set()
    assert reply.code == 403, reply.body
    assert "violates PodSecurity" in reply.message
    return {
        reason
        for reason in REASONS.values()
        if re.search(rf"(: |, ){re.escape(reason)}s? \(", reply.message)
    }


def offline(level: Level, case: Case) -> set[str]:
    return {REASONS[control.name] for control, _ in evaluate(level, case.pod)}
