"""The chapters of the demo, in their order; each checks that what it tells is so."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.cli.story.stage import NAMESPACE, Stage, only_job
from engine.cluster import api
from engine.prune.options import PruneOptions
from engine.prune.result import PruneAction, PruneEntry
from engine.prune.run import prune
from engine.refs import Ref
from engine.sandbox import FOREVER, Run
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from engine.status.outcome import Reason, State

BUSYBOX = "docker.io/library/busybox:1.36"
_SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {{name: {name}}}
spec:
  image: docker.io/library/busybox:1.36
  secrets: {{TOKEN: {{fromEnv: EXAMPLE_API_TOKEN}}}}
  script: {script}
"""


def owned_from_birth(stage: Stage) -> None:
    """Owned from birth: pod, then what it owns, then the record, and only then it runs."""
    stage.sandbox.requests.clear()
    result = stage.run([stage.example("environment-files-secrets")])
    job = only_job(result)
    stage.expect(job.record and job.record.state is State.SUCCEEDED, "the job succeeds")
    for write in stage.sandbox.requests.writes[:5]:
        stage.say(f"    {write.verb:7} {write.resource}/{write.name}")
    steps = [(write.verb, write.resource) for write in stage.sandbox.requests.writes[:5]]
    stage.expect(
        steps[0] == ("create", "pods") and steps[4] == ("patch", "pods"), "gate comes last"
    )
    (pod,) = stage.objects("pods", job.job.name)
    owned = [*stage.objects("secrets", job.job.name), *stage.objects("configmaps", job.job.name)]
    owners = {item["metadata"]["ownerReferences"][0]["uid"] for item in owned}
    stage.expect(owners == {pod["metadata"]["uid"]}, "the pod owns Secret and ConfigMap")
    stage.say(f"    Secret and ConfigMap are owned by pod {pod['metadata']['name']}")


def outage_survived(stage: Stage) -> None:
    """A registry outage survived: the next pull policy finds the image on the node."""
    stage.sandbox.images.cache(BUSYBOX)
    stage.sandbox.images.down("docker.io")
    stage.say("    docker.io is down; the node has the image")
    job = only_job(stage.run([stage.example("fallback")]))
    stage.sandbox.images.up("docker.io")
    attempts = job.record.attempts if job.record else ()
    stage.expect(
        [attempt.outcome for attempt in attempts] == [Reason.IMAGE_PULL_FAILED, Reason.SUCCEEDED],
        "the second attempt runs",
    )


def deadline_kept(stage: Stage) -> None:
    """A deadline: the job is ended when its timeout is over."""
    stage.sandbox.node.will(Run(duration=FOREVER), pod="deadline-*")
    job = only_job(stage.run([stage.example("deadline")]))
    stage.expect(
        job.record and job.record.reason is Reason.DEADLINE_EXCEEDED, "the deadline ends it"
    )


def quota_opened(stage: Stage) -> None:
    """A quota that opens: the job waits with nothing in the cluster but its record, then runs."""
    stage.sandbox.quota(NAMESPACE, "demo-quota", pods="0")

    def open_it() -> None:
        time.sleep(1.0)
        left = stage.objects("pods", "hello") + stage.objects("configmaps", "hello")
        stage.say(f"    objects of the queued job: {len(left)}; the quota opens now")
        stage.sandbox.quota(NAMESPACE, "demo-quota", pods="100")

    opener = threading.Thread(target=open_it, daemon=True)
    opener.start()
    job = only_job(stage.run([stage.example("hello")]))
    opener.join()
    stage.expect(job.record and job.record.state is State.SUCCEEDED, "the queued job runs")


def deletion_told(stage: Stage) -> None:
    """A pod deleted while it runs: its objects are collected, the record tells what happened."""
    stage.sandbox.node.will(Run(duration=FOREVER), pod="victim-*")
    spec = _write(stage, "victim", "sleep 3600")

    def delete_it() -> None:
        pod = _running_pod(stage, "victim")
        stage.say(f"    somebody deletes pod {pod['metadata']['name']}")
        ref = Ref("Pod", NAMESPACE, pod["metadata"]["name"])
        api.delete(stage.client, ref, uid=pod["metadata"]["uid"], grace=0)

    deleter = threading.Thread(target=delete_it, daemon=True)
    deleter.start()
    job = only_job(stage.run([spec]))
    deleter.join()
    stage.expect(job.record and job.record.reason is Reason.POD_DELETED, "the record tells it")
    _wait(stage, lambda: not _owned(stage, "victim"), "Secret and ConfigMap are collected")
    stage.say("    Secret and ConfigMap: collected; record: kept")


def outlived_pruned(stage: Stage) -> None:
    """A TTL: two hours later the finished pods go, with all they own; the records stay."""
    stage.sandbox.clock.advance(2 * 3600)

    def tell(entry: PruneEntry) -> None:
        if entry.action is PruneAction.DELETED:
            stage.say(f"    {entry.ref}: deleted: {entry.reason}")

    result = prune(stage.client, PruneOptions(namespaces=(NAMESPACE,)), tell)
    stage.expect(result.exit_code == 0, "all that should go goes")
    _wait(stage, lambda: not stage.sandbox.objects("pods", NAMESPACE), "the pods are gone")
    _wait(stage, lambda: not stage.sandbox.objects("secrets", NAMESPACE), "the Secrets go along")
    found = stage.sandbox.objects("configmaps", NAMESPACE)
    left = {item["metadata"]["name"] for item in found} - {ROOT_CERTIFICATE}
    stage.expect(left and all(name.endswith(".record") for name in left), "the records stay")
    stage.say(f"    pods: 0, Secrets: 0; records: {len(left)}")


def nothing_changed(stage: Stage) -> None:
    """A second run changes nothing: finished jobs stay finished, although their pods are gone."""
    stage.sandbox.requests.clear()
    names = ("environment-files-secrets", "fallback", "deadline", "hello")
    result = stage.run([*map(stage.example, names), stage.folder / "victim.yaml"])
    stage.expect(not any(job.changed for job in result.jobs), "no job changes")
    writes, count = len(stage.sandbox.requests.writes), len(stage.sandbox.requests)
    stage.expect(writes == 0, "nothing is written")
    stage.say(f"    {len(result.jobs)} jobs, {count} requests, {writes} writes: nothing changed")


CHAPTERS: tuple[Callable[[Stage], None], ...] = (
    owned_from_birth,
    outage_survived,
    deadline_kept,
    quota_opened,
    deletion_told,
    outlived_pruned,
    nothing_changed,
)


def _write(stage: Stage, name: str, script: str) -> Path:
    path = stage.folder / f"{name}.yaml"
    path.write_text(_SPEC.format(name=name, script=script), encoding="utf-8")
    return path


def _running_pod(stage: Stage, job: str) -> dict[str, Any]:
    def running() -> bool:
        return any(p["status"].get("phase") == "Running" for p in stage.objects("pods", job))

    _wait(stage, running, "the pod runs")
    return stage.objects("pods", job)[0]


def _owned(stage: Stage, job: str) -> bool:
    return bool(stage.objects("secrets", job) or stage.objects("configmaps", job))


def _wait(stage: Stage, ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20.0
    while not ready():
        stage.expect(time.monotonic() < deadline, what)
        time.sleep(0.02)
