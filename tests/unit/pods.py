"""Pods as the API returns them, built from the few things that matter to a test."""

from collections.abc import Mapping
from typing import Any

from engine.api.model import Job
from engine.refs import GATE

UID = "uid-1"
CREATED = "2026-01-01T12:00:00Z"
STARTED = "2026-01-01T12:00:10Z"
FINISHED = "2026-01-01T12:00:30Z"


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    words = {"message": message} if message else {}
    return {"waiting": {"reason": reason, **words}}


def running() -> dict[str, Any]:
    return {"running": {"startedAt": STARTED}}


def ended(code: int, reason: str = "", message: str = "", at: str = FINISHED) -> dict[str, Any]:
    reason = reason or ("Completed" if code == 0 else "Error")
    words = {"message": message} if message else {}
    times = {"startedAt": STARTED, "finishedAt": at}
    return {"terminated": {"exitCode": code, "reason": reason, **times, **words}}


def container(name: str, state: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "image": f"{name}:1", "state": dict(state), **more}


def pod(
    main: Mapping[str, Any] | None = None,
    *,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    init: Mapping[str, Mapping[str, Any]] | None = None,
    sidecars: Mapping[str, Mapping[str, Any]] | None = None,
    phase: str = "Running",
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A pod with a main container, others beside it, and init containers before it."""
    inits = {**(sidecars or {}), **(init or {})}
    mains = {"main": main, **(others or {})} if main is not None else (others or {})
    names = [*inits], ["main", *(others or {})]
    policy = {"restartPolicy": "Always"}
    return {
        "metadata": {
            "name": "build-1",
            "namespace": "ci",
            "uid": UID,
            "creationTimestamp": CREATED,
            **(metadata or {}),
        },
        "spec": {
            "initContainers": [
                {"name": n, "image": f"{n}:1", **(policy if n in (sidecars or {}) else {})}
                for n in names[0]
            ],
            "containers": [{"name": n, "image": f"{n}:1"} for n in names[1]],
            "nodeName": "node-1",
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "initContainerStatuses": [container(n, s) for n, s in inits.items()],
            "containerStatuses": [container(n, s) for n, s in mains.items()],
            **status,
        },
    }


def job_pod(
    job: Job,
    main: Mapping[str, Any] | None = None,
    *,
    attempt: int = 1,
    uid: str = UID,
    run: str = "",
    gated: bool = False,
    deleted: str = "",
    policies: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The pod of an attempt of `job`; a gated one has no status but its phase."""
    run = run or job.run
    metadata: dict[str, Any] = {
        "name": f"{job.name}-{run}-{attempt}",
        "namespace": job.namespace,
        "uid": uid,
        "labels": {
            "app.kubernetes.io/managed-by": "engine",
            "jobs.engine/job": job.name,
            "jobs.engine/run": run,
            "jobs.engine/attempt": str(attempt),
            "jobs.engine/source": "default",
            **(labels or {}),
        },
    }
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    if gated or main is None:
        more.setdefault("phase", "Pending")
    made = pod(main, metadata=metadata, **more)
    for entry in made["spec"]["containers"]:
        if policies and entry["name"] in policies:
            entry["imagePullPolicy"] = policies[entry["name"]]
    if gated:
        made["spec"]["schedulingGates"] = [{"name": GATE}]
        made["spec"].pop("nodeName")
    return made
