"""Any record, any pods: also those that no engine would have left."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from engine.api.model import RUN_LENGTH, Job, PullClass, PullSettings
from engine.errors import AdmissionRefusedError, ForbiddenError, QuotaExceededError
from engine.lifecycle.record import Attempt, PullFailure, Record, RunHistoryEntry
from engine.lifecycle.state import LifecycleState, Observation, Rejection
from engine.refs import GATE, JobKey, pod_name
from engine.status.deletion import Deletion
from engine.status.outcome import Outcome, Reason, State
from tests.unit.builders import make_job
from tests.unit.pods import container, ended, running, waiting
from tests.unit.strategies import any_text

JOBS = (
    make_job(),
    make_job(pullPolicy=["Always", "IfNotPresent"], retry={"max": 2, "on": ["Evicted"]}),
    make_job(onChange="Wait", rerun="2", retry={"max": 1, "on": ["PodDeleted", "NodeLost"]}),
    make_job(
        pullPolicy=["Always", "Always"],
        services=[{"name": "redis", "image": "r", "pullPolicy": ["Never", "Always"]}],
        initContainers=[{"name": "prepare", "image": "p"}],
        registryCredentials=[{"registry": "r", "username": "u", "password": {"value": "p"}}],
        startTimeout="1m",
    ),
)
CONTAINERS = ("main", "redis", "prepare")
UIDS = ("uid-1", "uid-2", "uid-3")
UNDER_WAY = tuple(state for state in State if not state.is_final)
_START = datetime(2026, 1, 1, 12, tzinfo=UTC)

uids = st.sampled_from(UIDS)
jobs = st.sampled_from(JOBS)
containers = st.sampled_from(CONTAINERS)
reasons = st.sampled_from(Reason)
times = st.integers(0, 7_200_000).map(lambda ms: _START + timedelta(milliseconds=ms))
stamps = times.map(lambda time: time.isoformat().replace("+00:00", "Z"))
messages = st.sampled_from(
    ("", "not found", 'Back-off pulling image "x"', "pull QPS exceeded", "unauthorized",
     "dial tcp: connection refused", 'secret "build" not found')
) | any_text  # fmt: skip
waiting_reasons = st.sampled_from(
    ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
     "CreateContainerConfigError", "CrashLoopBackOff", "ContainerCreating", "PodInitializing",
     "", "Unheard")
)  # fmt: skip
states = st.one_of(
    st.just({}),
    st.just({"running": {}}),
    st.builds(running),
    st.builds(waiting, waiting_reasons, messages),
    st.builds(
        ended,
        st.sampled_from((0, 1, 3, 137, 255)),
        st.sampled_from(("", "OOMKilled", "StartError", "ContainerStatusUnknown")),
        messages,
        stamps,
    ),
)

failures = st.builds(
    PullFailure,
    containers,
    st.just("ErrImagePull"),
    st.sampled_from(PullClass),
    any_text,
    st.sampled_from(("", "registry.example/tool:1")),
)


def attempts(
    run: str, number: int, outcomes: st.SearchStrategy[Reason | None]
) -> st.SearchStrategy[Attempt]:
    """One that is under way has a pod."""
    made = st.builds(
        Attempt,
        st.just(number),
        st.just(pod_name("build", run, number)),
        uid=st.just("") | uids,
        policies=st.dictionaries(containers, st.just("Always")),
        claimed_at=st.none() | times,
        started_at=st.none() | times,
        finished_at=st.none() | times,
        outcome=outcomes,
        message=any_text,
        exit_code=st.none() | st.integers(0, 255),
        failures=st.lists(failures, max_size=3).map(tuple),
    )
    return made.map(lambda a: a if a.uid or not a.is_open else replace(a, uid="uid-1"))


past_runs = st.builds(
    RunHistoryEntry,
    st.just("0a1b2c3d"),
    state=st.sampled_from(State),
    reason=st.none() | st.sampled_from(Reason),
    message=any_text,
    finished_at=st.none() | times,
)


@st.composite
def records(draw: st.DrawFn, job: Job) -> Record:
    """Records of this job that can be read: of this run, or another, in any state."""
    spec_hash = draw(st.sampled_from((job.spec_hash, job.spec_hash, "f" * 64)))
    run, count = spec_hash[:RUN_LENGTH], draw(st.integers(0, 3))
    final = draw(st.booleans())
    reason = draw(reasons if final else st.none() | reasons)
    of_a_pod = final and reason in (Reason.SUCCEEDED, Reason.SCRIPT_FAILED)
    if of_a_pod:
        count = max(1, count)
    last = st.just(reason) if of_a_pod else st.none() | reasons
    made = [draw(attempts(run, n, last if n == count else reasons)) for n in range(1, count + 1)]
    return Record(
        JobKey("ci", "build"),
        draw(st.sampled_from(("default", "default", "default", "nightly"))),
        spec_hash,
        state=reason.state if final and reason else draw(st.sampled_from(UNDER_WAY)),
        reason=reason,
        message=draw(any_text),
        exit_code=draw(st.none() | st.integers(0, 255)),
        attempts=tuple(made),
        queued_at=draw(st.none() | times),
        started_at=draw(st.none() | times),
        finished_at=draw(st.none() | times),
        history=tuple(draw(st.lists(past_runs, max_size=3))),
        version=draw(st.sampled_from(("", "7"))),
    )


def meddling(labels: dict[str, str]) -> st.SearchStrategy[dict[str, Any]]:
    """What anybody may make of the metadata of a pod with these labels."""
    forged = st.sampled_from(("", "x", "9" * 20))
    changed = st.builds(
        lambda key, value: {**labels, key: value}, st.sampled_from([*labels]), forged
    )
    held = st.just(["example.com/held"])
    return st.fixed_dictionaries({}, optional={"labels": st.none() | changed, "finalizers": held})


@st.composite
def pods(draw: st.DrawFn, job: Job) -> dict[str, Any]:
    """A pod by its name of the job; whatever the API may leave out may be missing.

    Its labels are the engine's, mostly, but anybody may have written or changed them.
    """
    run = draw(st.sampled_from((job.run, job.run, "ffffffff")))
    number = draw(st.integers(1, 3))
    metadata: dict[str, Any] = {
        "name": f"build-{run}-{number}",
        "namespace": "ci",
        "uid": draw(uids),
        "creationTimestamp": draw(stamps),
        "labels": {
            "app.kubernetes.io/managed-by": "engine",
            "jobs.engine/job": "build",
            "jobs.engine/run": run,
            "jobs.engine/attempt": str(number),
            "jobs.engine/source": draw(st.sampled_from(("default", "default", "nightly"))),
        },
    }
    metadata |= draw(meddling(metadata["labels"]))
    if draw(st.booleans()):
        metadata["deletionTimestamp"] = draw(stamps)
        if draw(st.booleans()):
            metadata["deletionGracePeriodSeconds"] = draw(st.integers(0, 60))
        metadata["generation"] = draw(st.integers(0, 3))
    spec: dict[str, Any] = {"containers": [{"name": "main"}, {"name": "redis"}]}
    if draw(st.booleans()):
        policy = draw(st.sampled_from(({}, {"restartPolicy": "Always"})))
        spec["initContainers"] = [{"name": "prepare", **policy}]
    if draw(st.booleans()):
        spec["schedulingGates"] = draw(
            st.sampled_from(
                ([], [{"name": GATE}], [{"name": "x"}, {"name": GATE}], [{"name": "x"}])
            )
        )
    status: dict[str, Any] = {
        "phase": draw(st.sampled_from(("Pending", "Running", "Succeeded", "Failed", "Unknown")))
    }
    for field, names in (
        ("containerStatuses", ("main", "redis")),
        ("initContainerStatuses", ("prepare",)),
    ):
        if draw(st.booleans()):
            status[field] = [container(name, draw(states)) for name in names]
    if draw(st.booleans()):
        status["startTime"] = draw(stamps)
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = 3600
    if draw(st.booleans()):
        status["observedGeneration"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        status["reason"] = draw(
            st.sampled_from(("Evicted", "DeadlineExceeded", "NodeLost", "OutOfcpu", "Other"))
        )
    if draw(st.booleans()):
        kind = draw(st.sampled_from(("DisruptionTarget", "PodScheduled", "Ready")))
        truth = draw(st.sampled_from(("True", "False", "Unknown")))
        status["conditions"] = [{"type": kind, "status": truth}]
    whole = {"metadata": metadata, "spec": spec, "status": status}
    if draw(st.integers(0, 9)) == 0:
        del whole["status"]
    return whole


@st.composite
def lifecycle_states(draw: st.DrawFn) -> LifecycleState:
    job = draw(jobs)
    by_container = st.tuples(uids, containers)
    observed = Observation(
        pods=tuple(draw(st.lists(pods(job), max_size=3))),
        created=draw(st.dictionaries(uids, st.sampled_from(("", "7")))),
        read_ungated=draw(st.sets(uids)),
        refreshed_at=draw(st.dictionaries(uids, times)),
        dependents_ready=frozenset(draw(st.sets(uids))),
        secrets_missing=draw(st.dictionaries(uids, messages, max_size=2)),
        deleted_uids=frozenset(draw(st.sets(uids))),
        deleted_outcomes=draw(
            st.dictionaries(uids, st.builds(Outcome, st.sampled_from(Reason), any_text), max_size=2)
        ),
        rejection=draw(
            st.none()
            | st.builds(
                Rejection,
                st.sampled_from((QuotaExceededError, AdmissionRefusedError, ForbiddenError)),
                any_text,
                times,
                record_version=st.sampled_from((None, "", "7")),
            )
        ),
        pull_causes=draw(st.dictionaries(by_container, messages, max_size=3)),
        dependents_looked_up=draw(
            st.dictionaries(st.tuples(uids, st.booleans()), times, max_size=2)
        ),
        deletions=draw(st.dictionaries(uids, st.builds(Deletion, st.none() | times), max_size=2)),
    )
    pull = PullSettings(
        frozenset(draw(st.sets(st.sampled_from(PullClass)))), draw(st.sampled_from((0.0, 60.0)))
    )
    return LifecycleState(
        job,
        draw(st.none() | records(job)),
        observed,
        draw(times),
        "default",
        pull,
    )
