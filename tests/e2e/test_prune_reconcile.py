"""What `engine reconcile --once` prunes: expired pods of its own source, and removed specs."""

import json
import time
from typing import Any

import pytest

from engine.sandbox import Fault, Run, Sandbox
from engine.sandbox.faults import Refuse
from tests.support.clusters import NAMESPACE
from tests.support.engine import CommandResult, Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

DAY = 86_400


def pruned(run: CommandResult) -> dict[str, str]:
    return {f"{e['kind']}/{e['name']}": e["action"] for e in run.result["pruned"]}


def record(sandbox: Sandbox, job: str) -> dict[str, Any] | None:
    return sandbox.get("configmaps", NAMESPACE, f"{job}.record")


def test_expired_pods_go_at_the_end_and_their_jobs_do_not_run_again(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile(ends=0)
    (pod,) = objects.pods()
    sandbox.clock.advance(DAY)
    sandbox.requests.clear()
    run = engine.reconcile(ends=0)
    assert pruned(run) == {f"Pod/{pod['metadata']['name']}": "deleted"}
    assert run.result["pruned"][0]["reason"].startswith("ttl 4500s, age 864")
    assert run.job("job")["changed"] is False
    assert run.job("job")["state"] == "Succeeded"
    objects.wait_until_clean()
    assert record(sandbox, "job") is not None
    again = engine.reconcile()
    assert (again.code, objects.pods(), again.result["pruned"]) == (0, [], [])
    assert again.job("job")["changed"] is False


def test_without_anything_expired_a_reconcile_reads_once_more_and_writes_nothing(
    engine: Engine, sandbox: Sandbox
) -> None:
    for number in range(20):
        engine.spec(f"job-{number}", script="true")
    engine.reconcile(ends=0)
    sandbox.requests.clear()
    run = engine.reconcile()
    assert run.result["pruned"] == []
    assert sandbox.requests.writes == []
    reads = {("get", ""): 1, ("list", "pods"): 2, ("list", "configmaps"): 1}
    assert sandbox.requests.counts == reads


def test_pods_of_another_source_are_left_to_it(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("theirs", script="true")
    engine.reconcile("--source", "theirs", ends=0)
    (engine.folder / "theirs.yaml").unlink()
    engine.spec("ours", script="true")
    engine.reconcile("--source", "ours", ends=0)
    sandbox.clock.advance(DAY)
    run = engine.reconcile("--source", "ours")
    assert [entry["name"].split("-")[0] for entry in run.result["pruned"]] == ["ours"]
    assert [pod["metadata"]["labels"]["jobs.engine/job"] for pod in objects.pods()] == ["theirs"]


def test_expired_pods_go_in_a_namespace_that_no_spec_names_any_more(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    _run_in(engine, sandbox, "dev", "--source", "ours")
    _run_in(engine, sandbox, "theirs", "--source", "theirs")
    sandbox.clock.advance(DAY)
    engine.spec("other", script="true")
    run = engine.reconcile("--source", "ours", ends=0)
    assert [(e["namespace"], e["action"]) for e in run.result["pruned"]] == [("dev", "deleted")]
    assert _namespaces_with_pods(sandbox) == {NAMESPACE, "theirs"}
    assert sandbox.get("configmaps", "dev", "job.record") is not None


def test_expired_pods_go_in_a_namespace_of_kubernetes_own(engine: Engine, sandbox: Sandbox) -> None:
    _run_in(engine, sandbox, "kube-jobs")
    sandbox.clock.advance(DAY)
    engine.spec("other", script="true")
    run = engine.reconcile(ends=0)
    assert [e["namespace"] for e in run.result["pruned"]] == ["kube-jobs"]
    assert _namespaces_with_pods(sandbox) == {NAMESPACE}


def test_a_source_without_any_spec_prunes_what_it_left(engine: Engine, sandbox: Sandbox) -> None:
    _run_in(engine, sandbox, "dev")
    sandbox.clock.advance(DAY)
    run = engine.reconcile("--allow-empty", ends=0)
    assert [(e["namespace"], e["action"]) for e in run.result["pruned"]] == [("dev", "deleted")]


def test_who_may_not_list_pods_everywhere_prunes_where_its_specs_are(
    engine: Engine, sandbox: Sandbox
) -> None:
    _run_in(engine, sandbox, "dev")
    sandbox.clock.advance(DAY)
    engine.spec("other", script="true")
    words = 'pods is forbidden: User "x" cannot list resource "pods" at the cluster scope'
    refusal = Refuse(403, "Forbidden", words)
    sandbox.faults.add(Fault(refusal, verb="list", resource="pods", skip=1, times=1))
    run = engine.reconcile(ends=0)
    assert (run.result["pruned"], "forbidden" in run.stderr) == ([], False)
    assert "dev" in _namespaces_with_pods(sandbox)


def test_an_engine_that_stays_prunes_where_no_spec_is_any_more_and_asks_once(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    _run_in(engine, sandbox, "dev", "--source", engine.namespace)
    engine.spec("other", script="true")
    sandbox.requests.clear()
    with EngineProcess(engine, "--prune-interval", "0.2s") as staying:
        objects.api.wait(lambda: _lists_everywhere(sandbox), "the first pass")
        time.sleep(2)
        assert len(_lists_everywhere(sandbox)) == 1
        sandbox.clock.advance(DAY)
        objects.api.wait(lambda: "dev" not in _namespaces_with_pods(sandbox), "end of the pod")
    assert "pod/dev/job-" in staying.text


def test_a_pod_held_back_where_no_spec_is_any_more_goes_by_its_time_since_its_scheduling(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    held = {"spec": {"schedulingGates": [{"name": "example.com/admission"}]}}
    arguments = ("--source", engine.namespace, "--wait", "applied")
    _run_in(engine, sandbox, "dev", *arguments, podPatch=held)
    engine.spec("other", script="true")
    (pod,) = sandbox.objects("pods", "dev")
    with EngineProcess(engine, "--prune-interval", "0.2s") as staying:
        sandbox.clock.advance(DAY)
        looked = len(_lists_everywhere(sandbox))
        objects.api.wait(lambda: len(_lists_everywhere(sandbox)) > looked + 1, "another look")
        assert "dev" in _namespaces_with_pods(sandbox)
        remove = [{"op": "remove", "path": "/spec/schedulingGates"}]
        objects.api.patch("pods", pod["metadata"]["name"], remove, "dev", kind="json")
        objects.api.wait(
            lambda: sandbox.objects("pods", "dev")[0]["status"].get("phase") == "Succeeded",
            "its end",
        )
        looked = len(_lists_everywhere(sandbox))
        objects.api.wait(lambda: len(_lists_everywhere(sandbox)) > looked + 1, "another look")
        assert "dev" in _namespaces_with_pods(sandbox)
        sandbox.clock.advance(DAY)
        objects.api.wait(lambda: "dev" not in _namespaces_with_pods(sandbox), "end of the pod")
    assert "pod/dev/job-" in staying.text


def test_what_cannot_be_pruned_is_told_and_is_not_the_jobs_failure(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    sandbox.clock.advance(DAY)
    sandbox.deny("delete", "pods")
    run = engine.reconcile(ends=0)
    (entry,) = run.result["pruned"]
    assert entry["action"] == "failed"
    assert entry["reason"].startswith("forbidden: ")


def test_without_prune_a_removed_spec_changes_nothing(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("stays", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    assert engine.reconcile().result["pruned"] == []
    assert len(objects.pods()) == 2
    assert record(sandbox, "gone") is not None


def test_an_empty_source_is_refused_unless_it_is_meant(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "job.yaml").unlink()
    refused = engine.reconcile("--prune", ends=2)
    assert "--allow-empty" in refused.stderr
    assert len(objects.pods()) == 1
    engine.reconcile("--prune", "--allow-empty", ends=0)
    assert objects.pods() == []
    assert record(sandbox, "job") is None


def test_a_source_that_cannot_be_read_is_refused(engine: Engine, objects: Objects) -> None:
    engine.spec("job", script="true")
    engine.spec("other", script="true")
    engine.reconcile(ends=0)
    engine.write("job.yaml", "kind: [")
    engine.reconcile("--prune", ends=2)
    assert len(objects.pods()) == 2


def test_jobs_of_other_sources_are_not_removed(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("theirs", script="true")
    engine.reconcile("--source", "theirs", ends=0)
    (engine.folder / "theirs.yaml").unlink()
    engine.spec("ours", script="true")
    run = engine.reconcile("--source", "ours", "--prune")
    assert (run.code, run.result["pruned"]) == (0, [])
    assert record(sandbox, "theirs") is not None
    assert len(objects.pods()) == 2


def test_prune_without_a_named_source_is_refused_before_anything_is_asked(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("job", script="true")
    del engine.environment["ENGINE_SOURCE"]
    for once in (("--once",), ()):
        said = engine.run("reconcile", *once, str(engine.folder), "--prune", ends=2)
        assert "--prune needs --source" in said.stderr
    assert sandbox.requests.where() == []
    engine.run("reconcile", "--once", str(engine.folder), "--prune", "--source", "default", ends=0)


def test_what_will_be_removed_is_said_before_anything_is_written(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    engine.spec("new", script="true")
    run = engine.reconcile("--prune", ends=0)
    words = "ci/gone: no spec in source default any more; the job will be removed"
    assert run.lines[0] == words
    assert run.lines.count(words) == 1


def test_an_engine_that_stays_says_once_what_it_will_remove(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("held", script="true")
    engine.spec("stays", script="true")
    with EngineProcess(engine, "--prune", "--prune-interval", "0.2s") as staying:
        staying.wait_for_line("ci/held: Succeeded")
        staying.wait_for_line("ci/stays: Succeeded")
        patch = {"metadata": {"annotations": {"jobs.engine/hold": "true"}}}
        objects.api.patch("pods", objects.pod("held")["metadata"]["name"], patch, NAMESPACE)
        (engine.folder / "held.yaml").unlink()
        staying.wait_for_line("the job will be removed")
        time.sleep(3)
    assert staying.text.count("the job will be removed") == 1


def test_what_appears_during_the_run_is_not_removed_unsaid(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """Another folder that shares the source, by mistake."""
    sandbox.node.will(Run(duration=3), pod="slow-*", container="main")
    engine.spec("slow", script="sleep 3")
    run = engine.start("--prune")
    other = engine.write("../other/other.yaml", "")
    document = json.loads((engine.folder / "slow.yaml").read_text())
    document["metadata"]["name"] = "other"
    other.write_text(json.dumps(document))
    objects.api.wait(lambda: record(sandbox, "slow"), "the record of slow")
    engine.run("reconcile", "--once", str(other), ends=0)
    assert finish(run, ends=0).result["pruned"] == []
    assert record(sandbox, "other") is not None


def test_no_job_is_removed_where_the_source_has_no_record(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    _run_in(engine, sandbox, "dev")
    objects.api.delete("configmaps", "job.record", "dev")
    engine.spec("other", script="true")
    assert engine.reconcile("--prune", ends=0).result["pruned"] == []
    assert "dev" in _namespaces_with_pods(sandbox)


def test_the_record_stays_until_the_pod_is_gone_and_the_next_pass_ends_it(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("stays", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    denial = sandbox.deny("delete", "pods")
    run = engine.reconcile("--prune", ends=1)
    assert record(sandbox, "gone") is not None
    assert "could not be deleted" in run.result["errors"][0]
    sandbox.allow(denial)
    engine.reconcile("--prune", ends=0)
    assert record(sandbox, "gone") is None


def test_a_hold_protects_the_whole_job(engine: Engine, sandbox: Sandbox, objects: Objects) -> None:
    engine.spec("stays", script="true")
    engine.spec("held", script="true")
    engine.reconcile(ends=0)
    patch = {"metadata": {"annotations": {"jobs.engine/hold": "true"}}}
    objects.api.patch("pods", objects.pod("held")["metadata"]["name"], patch, NAMESPACE)
    (engine.folder / "held.yaml").unlink()
    run = engine.reconcile("--prune", ends=0)
    assert pruned(run) == {"ConfigMap/held.record": "protected"}
    assert len(objects.pods()) == 2


def test_no_more_goes_in_one_pass_than_the_operator_allows(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    for name in ("stays", "gone-a", "gone-b", "gone-c"):
        engine.spec(name, script="true")
    engine.reconcile(ends=0)
    for name in ("gone-a", "gone-b", "gone-c"):
        (engine.folder / f"{name}.yaml").unlink()
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {maxDeletesPerPass: 2}\n"
    config = str(engine.write("../engine.yaml", text))
    run = engine.reconcile("--prune", "--config", config, ends=0)
    assert run.result["errors"] == []
    assert "deletes is reached, " in run.stderr
    deleted = [entry for entry in run.result["pruned"] if entry["action"] == "deleted"]
    assert len(deleted) == 2


def test_who_may_not_look_everywhere_looks_where_the_specs_are(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("stays", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    words = (
        'configmaps is forbidden: User "x" cannot list resource "configmaps" at the cluster scope'
    )
    sandbox.faults.add(Fault(Refuse(403, "Forbidden", words), verb="list", resource="configmaps"))
    engine.reconcile("--prune", ends=0)
    assert record(sandbox, "gone") is None


@pytest.mark.parametrize(("code", "kept"), [(0, 600), (1, 7200)])
def test_how_long_a_pod_is_kept_depends_on_its_outcome(
    engine: Engine, sandbox: Sandbox, objects: Objects, code: int, kept: int
) -> None:
    sandbox.node.will(Run(exit_code=code), container="main")
    engine.spec("job", script="true", ttlAfterFinished={"success": "10m", "failure": "2h"})
    assert engine.reconcile().code == code
    assert "jobs.engine/expires-at" in objects.pod("job")["metadata"]["annotations"]
    sandbox.requests.clear()
    assert engine.reconcile().result["pruned"] == []
    assert sandbox.requests.writes == []
    sandbox.clock.advance(kept - 60)
    assert engine.reconcile().result["pruned"] == []
    sandbox.clock.advance(61)
    (entry,) = engine.reconcile().result["pruned"]
    assert entry["action"] == "deleted"
    assert entry["reason"].startswith("expires-at ")
    assert objects.pods() == []


def test_a_time_that_was_not_written_before_a_crash_is_written_by_the_next_engine(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", ttlAfterFinished={"success": "10m"})
    engine.reconcile(ends=0)
    pod = objects.pod("job")
    stamp = pod["metadata"]["annotations"]["jobs.engine/expires-at"]
    applied = pod["metadata"]["annotations"]["jobs.engine/last-applied"].split()
    mark = " ".join(name for name in applied if "expires-at" not in name)
    before = {"jobs.engine/expires-at": None, "jobs.engine/last-applied": mark}
    patch = {"metadata": {"annotations": before}}
    objects.api.patch("pods", pod["metadata"]["name"], patch, NAMESPACE)
    engine.reconcile(ends=0)
    assert objects.pod("job")["metadata"]["annotations"]["jobs.engine/expires-at"] == stamp


def _run_in(engine: Engine, sandbox: Sandbox, namespace: str, *arguments: str, **spec: Any) -> None:
    """A job that was run in `namespace`, and whose spec is gone."""
    sandbox.namespace(namespace)
    document = {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": "job", "namespace": namespace},
        "spec": {"image": engine.image, "script": "true", **spec},
    }
    path = engine.write("job.yaml", json.dumps(document))
    engine.reconcile(*arguments, ends=0)
    path.unlink()


def _namespaces_with_pods(sandbox: Sandbox) -> set[str]:
    return {pod["metadata"]["namespace"] for pod in sandbox.objects("pods")}


def _lists_everywhere(sandbox: Sandbox) -> list[Any]:
    return [entry for entry in sandbox.requests.where("list", "pods") if not entry.namespace]


def test_a_removed_job_takes_its_running_pod_along_whatever_labels_that_has_by_now(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=DAY), pod="job-*")
    engine.spec("job", script="sleep 600")
    engine.spec("other", script="true")
    engine.reconcile("--wait=applied", "--source", "web", ends=0)
    (pod,) = [one for one in objects.pods() if one["metadata"]["name"].startswith("job-")]
    name = pod["metadata"]["name"]
    labels = {"metadata": {"labels": {"jobs.engine/source": "mine"}}}
    objects.api.patch("pods", name, labels, NAMESPACE)
    (engine.folder / "job.yaml").unlink()
    engine.reconcile("--source", "web", "--prune", ends=0)
    assert objects.api.find("pods", name, NAMESPACE) is None
    assert objects.api.find("configmaps", "job.record", NAMESPACE) is None
