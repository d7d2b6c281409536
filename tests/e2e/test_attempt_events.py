"""The Warning Event on a pod whose attempt failed, for whoever looks with kubectl alone."""

from typing import Any

import pytest

from engine.sandbox import Fault, Refuse, Run, Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

pytestmark = pytest.mark.only("sandbox")

SECRET = "the-token-nobody-may-see"


def told(sandbox: Sandbox, reason: str = "AttemptFailed") -> list[dict[str, Any]]:
    return [event for event in sandbox.objects("events", NAMESPACE) if event["reason"] == reason]


def messages(sandbox: Sandbox, reason: str = "AttemptFailed") -> list[str]:
    return [event["message"] for event in told(sandbox, reason)]


def test_a_failed_attempt_is_a_warning_on_its_pod(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(exit_code=3), pod="job-*")
    engine.spec("job", script="exit 3")
    engine.reconcile(ends=1)
    (event,) = told(sandbox)
    (pod,) = sandbox.objects("pods", NAMESPACE)
    assert event["metadata"]["name"] == f"{pod['metadata']['name']}.attemptfailed"
    assert event["type"] == "Warning"
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert event["message"].startswith("ScriptFailed")
    engine.reconcile()
    assert len(told(sandbox)) == 1


def test_what_succeeds_or_is_cancelled_is_no_failure(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=60), pod="long-*")
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    engine.spec("long", script="sleep 60")
    engine.reconcile("--wait", "applied", ends=0)
    engine.run("cancel", "long", "-n", NAMESPACE, ends=0)
    assert engine.status()["long"]["state"] == "Cancelled"
    assert told(sandbox) == []


def test_each_attempt_that_fails_has_its_own(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(exit_code=137, reason="OOMKilled"), pod="job-*")
    engine.spec("job", script="true", retry={"max": 1, "on": ["OOMKilled"]})
    engine.reconcile(ends=1)
    assert len(messages(sandbox)) == 2
    assert {message.partition(":")[0] for message in messages(sandbox)} == {"OOMKilled"}


def test_a_pull_that_another_policy_answers_is_a_fallback_and_the_last_one_a_failure(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.missing("down.example/tool:1")
    engine.spec("job", image="down.example/tool:1", pullPolicy=["Always", "IfNotPresent"])
    engine.reconcile(ends=4)
    assert len(messages(sandbox, "PullPolicyFallback")) == 1
    (message,) = messages(sandbox)
    assert message.startswith("ImagePullFailed: ")
    assert "not found" in message
    first, second = (pod for pod in engine.status()["job"]["attempts"])
    assert told(sandbox)[0]["involvedObject"]["name"] == second["pod"]
    assert told(sandbox, "PullPolicyFallback")[0]["involvedObject"]["name"] == first["pod"]


def test_secrets_are_masked_in_it(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(exit_code=3, message=f"the token was {SECRET}"), pod="job-*")
    engine.spec("job", script="exit 3", secrets={"T": {"value": SECRET}})
    engine.reconcile()
    (message,) = messages(sandbox)
    assert SECRET not in message
    assert "***" in message


def test_without_events_there_is_none(engine: Engine, sandbox: Sandbox) -> None:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = engine.folder.parent / "engine.yaml"
    config.write_text(f"{head}features: {{events: false}}\n", encoding="utf-8")
    sandbox.node.will(Run(exit_code=3), pod="job-*")
    engine.spec("job", script="exit 3")
    engine.reconcile("--config", str(config), ends=1)
    assert told(sandbox) == []


def test_an_event_that_may_not_be_written_changes_nothing(engine: Engine, sandbox: Sandbox) -> None:
    refusal = Refuse(403, "Forbidden", "events is forbidden")
    sandbox.faults.add(Fault(refusal, verb="create", resource="events", times=None))
    sandbox.node.will(Run(exit_code=3), pod="job-*")
    engine.spec("job", script="exit 3")
    run = engine.reconcile(ends=1)
    assert run.job("job")["reason"] == "ScriptFailed"


def test_it_is_written_after_the_record_and_before_the_pod_goes(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.missing("down.example/tool:1")
    engine.spec("job", image="down.example/tool:1", pullPolicy=["Always"])
    engine.reconcile(ends=4)
    writes = [(entry.verb, entry.resource) for entry in sandbox.requests.writes]
    end = writes[writes.index(("update", "configmaps")) :]
    assert end == [("update", "configmaps"), ("create", "events"), ("delete", "pods")]


def test_a_fallback_is_told_once_although_a_quota_refuses_what_comes_next(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.missing("down.example/tool:1")
    full = Refuse(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: pods=1')
    sandbox.faults.add(Fault(full, verb="create", resource="pods", skip=1, times=2))
    engine.spec("job", image="down.example/tool:1", pullPolicy=["Always", "IfNotPresent"])
    run = engine.reconcile(ends=4)
    assert "exceeded quota" in run.stderr
    assert run.stderr.count("next is IfNotPresent") == 1
