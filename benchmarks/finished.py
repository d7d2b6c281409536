"""A cluster in which jobs are over: their records, and the pods that wait for their TTL."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.bare import in_threads
from benchmarks.place import Place
from benchmarks.specs import write_specs
from engine.api.model import Config, Job
from engine.cluster.connect import connect
from engine.cluster.records import write_record
from engine.lifecycle.record import Attempt, MaskedRecord, Record
from engine.refs import pod_name
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from engine.status.outcome import Reason, State
from engine.wellknown import ATTEMPT, JOB, MANAGED_BY, MANAGER, RUN, SOURCE, TTL

SUCCEEDED = 0
_THREADS = 10


def finished_jobs(
    place: Place, folder: Path, count: int, namespace: str, *, pods: bool = False
) -> Path:
    """Folder of `count` specs, each with the record of a run that succeeded."""
    specs = write_specs(folder / f"{namespace}-{count}", count, namespace)
    jobs = load_specs(SpecOptions(paths=(str(specs),)), Config()).jobs
    uids = _finished_pods(place, jobs) if pods else {}
    client = connect(str(place.kubeconfig), connections=_THREADS).client
    in_threads(lambda job: write_record(client, finished_record(job, uids.get(job.name))), jobs)
    return specs


def finished_record(job: Job, uid: str | None = None) -> MaskedRecord:
    """Of one run that succeeded."""
    now = datetime.now(UTC).replace(microsecond=0)
    attempt = Attempt(
        number=1,
        pod=pod_name(job.name, job.run, 1),
        uid=uid or "00000000-0000-4000-8000-000000000000",
        policies={name: wanted[0] for name, wanted in job.policies.items()},
        claimed_at=now,
        started_at=now,
        finished_at=now,
        outcome=Reason.SUCCEEDED,
        exit_code=SUCCEEDED,
    )
    record = Record(
        key=job.key,
        source="default",
        spec_hash=job.spec_hash,
        state=State.SUCCEEDED,
        reason=Reason.SUCCEEDED,
        exit_code=SUCCEEDED,
        attempts=(attempt,),
        queued_at=now,
        started_at=now,
        finished_at=now,
    )
    return MaskedRecord(record)


def _finished_pods(place: Place, jobs: Sequence[Job]) -> dict[str, str]:
    """UIDs of the pods, by job."""
    uids: dict[str, str] = {}

    def make(job: Job) -> None:
        path = f"/api/v1/namespaces/{job.namespace}/pods"
        pod = place.bare.write("POST", path, _pod(job))
        name, uids[job.name] = pod["metadata"]["name"], pod["metadata"]["uid"]
        status = {"status": {"phase": "Succeeded", "containerStatuses": [_status(pod)]}}
        merge = "application/merge-patch+json"
        place.bare.write("PATCH", f"{path}/{name}/status", status, merge)

    in_threads(make, jobs)
    return uids


def _pod(job: Job) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER, JOB: job.name, RUN: job.run, ATTEMPT: "1", SOURCE: "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job.name, job.run, 1),
            "labels": labels,
            "annotations": {TTL: "86400"},
        },
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "nobody",
            "containers": [{"name": "main", "image": job.spec["image"]}],
        },
    }


def _status(pod: dict[str, Any]) -> dict[str, Any]:
    at = pod["metadata"]["creationTimestamp"]
    ended = {"exitCode": SUCCEEDED, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return {
        "name": "main",
        "image": pod["spec"]["containers"][0]["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
