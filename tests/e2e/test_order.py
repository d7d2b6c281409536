"""Nothing runs before it is owned and recorded: read from the API server's audit log."""

from functools import partial

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects
from tests.support.recorder import Event

pytestmark = pytest.mark.only("real")

GATE = {"name": "jobs.engine/dependents"}
SECRETS = {"TOKEN": {"value": "anything"}}


def test_every_attempt_of_a_run_is_gated_furnished_recorded_and_then_let_go(
    engine: Engine, objects: Objects, cluster: Cluster, images: Images
) -> None:
    engine.spec("bare", command=["true"])
    engine.spec("plain", script="true")
    engine.spec("owns", script="true", secrets=SECRETS)
    engine.spec("fails", script="exit 3", secrets=SECRETS)
    engine.spec("falls", image=images.build(), script="true", pullPolicy=["Never", "IfNotPresent"])
    absent = images.absent()
    engine.spec("misses", image=absent, script="true", pullPolicy=["Always"] * 2, secrets=SECRETS)
    before = cluster.audit_position()
    with objects.api.watch("pods", objects.namespace) as seen:
        run = engine.reconcile()
        pods = attempts(run)
        first = {pod: seen.wait_for(partial(is_of, pod)) for pod in pods}

    assert {name: len(run.job(name)["attempts"]) for name in sorted(set(pods.values()))} == {
        "bare": 1, "fails": 1, "falls": 2, "misses": 2, "owns": 1, "plain": 1,
    }  # fmt: skip
    assert {pod: event.object["spec"]["schedulingGates"] for pod, event in first.items()} == {
        pod: [GATE] for pod in pods
    }
    assert steps(objects, cluster, before, pods) == {
        pod: expected(job) for pod, job in pods.items()
    }


def is_of(pod: str, event: Event) -> bool:
    return event.name == pod


def attempts(run: CommandResult) -> dict[str, str]:
    """The job of each pod that the run made."""
    return {a["pod"]: job["name"] for job in run.result["jobs"] for a in job["attempts"]}


def expected(job: str) -> list[str]:
    """The steps of an attempt of this job; a job with a script has a ConfigMap."""
    dependents = {"bare": [], "plain": ["configmap"], "falls": ["configmap"]}
    return ["pod", *dependents.get(job, ["configmap", "secret"]), "record", "ungate"]


def steps(
    objects: Objects, cluster: Cluster, before: int, pods: dict[str, str]
) -> dict[str, list[str]]:
    """What the server wrote for each pod, from its create to the end of its gate.

    The requests for one job come one after the other, so the order of their answers, which is the
    log's, is theirs. A job's attempts share one record: a write of it counts for the attempt that
    is being made. Dependents may come in either order.
    """
    found: dict[str, list[str]] = {pod: [] for pod in pods}
    making: dict[str, str] = {}
    for entry in cluster.audit_entries("engine/", before):
        ref = entry.get("objectRef", {})
        what, name = (entry["verb"], ref.get("resource")), ref.get("name", "")
        if ref.get("namespace") != objects.namespace or entry["responseStatus"]["code"] >= 300:
            continue
        if what == ("create", "pods"):
            making[f"{pods[name]}.record"] = name
            found[name].append("pod")
        elif what == ("patch", "pods") and name in making.values():
            del making[f"{pods[name]}.record"]
            found[name].append("ungate")
        elif name in pods and what in (("create", "secrets"), ("create", "configmaps")):
            found[name].append(what[1].removesuffix("s"))
        elif name in making and what[0] in ("create", "update"):
            found[making[name]].append("record")
    return {pod: with_dependents_sorted(made) for pod, made in found.items()}


def with_dependents_sorted(made: list[str]) -> list[str]:
    end = made.index("record") if "record" in made else len(made)
    return [*made[:1], *sorted(made[1:end]), *made[end:]]
