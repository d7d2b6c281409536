"""The runs of a spec that changes, and changes back."""

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

FIRST = "true"


def test_a_spec_that_comes_back_after_many_others_runs_again_beside_its_first_pod(
    engine: Engine, sandbox: Sandbox
) -> None:
    scripts = [FIRST, *(f"echo {number}" for number in range(8)), FIRST]
    for script in scripts:
        engine.spec("job", script=script)
        run = engine.reconcile(ends=0)
        assert run.job("job")["changed"] is True
    assert [attempt["pod"][-2:] for attempt in run.job("job")["attempts"]] == ["-2"]
    pods = {pod["metadata"]["name"] for pod in sandbox.objects("pods", NAMESPACE)}
    assert len(pods) == len(scripts)
    assert engine.reconcile(ends=0).job("job")["changed"] is False


def test_a_record_keeps_so_many_past_runs_with_their_attempts(engine: Engine) -> None:
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nrecords: {history: 2}\n"
    config = str(engine.write("../engine.yaml", text))
    for number in range(4):
        engine.spec("job", script=f"echo {number}")
        engine.reconcile("--config", config, ends=0)
    engine.run("rerun", "job", "-n", NAMESPACE, ends=0)
    engine.reconcile("--config", config, ends=0)
    history = engine.status()["job"]["history"]
    assert [past["state"] for past in history] == ["Succeeded", "Succeeded"]
    assert [[a["number"] for a in past["attempts"]] for past in history] == [[1], [1]]
    assert all(past["startedAt"] <= past["finishedAt"] for past in history)
    pods = [past["attempts"][0]["pod"] for past in history]
    assert [pod.split("-")[1] for pod in pods] == [past["run"] for past in history]
