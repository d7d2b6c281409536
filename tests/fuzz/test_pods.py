"""Pods: real ones whose labels and status anybody may have changed, from a watch to an action."""

import copy
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from engine.informers.pods import PodInformer
from engine.informers.reflector import WatchContext
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import LifecycleState, Observation
from engine.refs import pod_name
from engine.runtime.supervisor import Supervisor
from tests.fuzz import play
from tests.fuzz.structure import Path, at, edited, paths
from tests.unit.lifecycle.states import JOB, SOURCE, attempt, finished, record
from tests.unit.lifecycle.test_anything import PROMISES
from tests.unit.pods import UID, ended, job_pod, running, waiting
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import ModelClient
from tests.unit.strategies import NASTY

_PODS = (
    job_pod(JOB, gated=True),
    job_pod(JOB, running(), sidecars={"redis": running()}, startTime="2026-01-01T12:00:05Z"),
    job_pod(JOB, waiting("ErrImagePull", "not found"), init={"setup": ended(0)}, phase="Pending"),
    job_pod(JOB, ended(1, "OOMKilled"), phase="Failed", reason="Evicted", message="low on memory"),
    job_pod(JOB, running(), deleted="2026-01-01T12:00:15Z"),
)
_FIRST = pod_name(JOB.name, JOB.run, 1)
_NUMBERS = st.sampled_from((1, 1, 2))
_TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T12:00:00.123456Z")
_WORDS = (
    *NASTY, "", "engine", "True", "Failed", "Succeeded", "Running", "DisruptionTarget", "Evicted",
    "InvalidImageName", "CrashLoopBackOff", "ErrImagePull", "main", "9" * 30,
)  # fmt: skip
_FREE = {("metadata", "labels"), ("metadata", "annotations"), ("metadata", "finalizers")}
_RECORDS = (None, record(), record(attempt()), record(attempt()), finished())


def _may_be_changed(path: Path) -> bool:
    """What the server itself doesn't see to: names, UIDs and the form of a status are its own."""
    status = path[:1] == ("status",) and len(path) > 1 and path[-1] not in ("name", "type")
    return path[:2] in _FREE or status or path == ("spec", "schedulingGates")


def _of_its_type(value: Any, path: Path) -> st.SearchStrategy[Any]:
    if str(path[-1]).endswith(("At", "Time")):
        return st.sampled_from(_TIMES)
    match value:
        case bool():
            return st.booleans()
        case int():
            return st.integers(-(2**31), 2**31 - 1)
        case str():
            return st.sampled_from(_WORDS)
        case list():
            return st.sampled_from((value * 2, []))
        case _:
            return st.just({key: value[key] for key in ("name", "type") if key in value})


@st.composite
def _pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod after some changes, each of which leaves the type of what it changes as it is."""
    pod: dict[str, Any] = draw(st.sampled_from(_PODS))
    for _ in range(draw(st.integers(0, 4))):
        places = [path for path in paths(pod) if _may_be_changed(path)]
        if not places:
            break
        place = draw(st.sampled_from(places))
        pod = edited(pod, place, draw(st.none() | _of_its_type(at(pod, place), place)))
    name = pod_name(JOB.name, draw(st.sampled_from((JOB.run, JOB.run, "f" * 8))), draw(_NUMBERS))
    uids = (UID, UID, "uid-2") if name == _FIRST else (f"uid-of-{name}",)  # one has one name
    uid = draw(st.sampled_from(uids))
    version = str(draw(st.integers(1, 9)))
    own = {"name": name, "uid": uid, "namespace": "ci", "resourceVersion": version}
    return {**pod, "metadata": {**pod["metadata"], **own}}


_KINDS = st.sampled_from(("ADDED", "MODIFIED", "DELETED"))
_EVENTS = st.lists(st.tuples(_KINDS, _pods()), max_size=4)


def _hear_and_decide(heard: tuple[list[tuple[str, dict[str, Any]]], Record | None]) -> None:
    events, known = heard
    emit = list[Any]().append
    client = ModelClient(Cluster())
    context = WatchContext(client, Supervisor(emit), lambda _key: None, emit)
    informer = PodInformer(context, "ci", "")
    for kind, pod in events:
        informer._on_event(kind, copy.deepcopy(pod))
    for now in (datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)):
        state = _make_state(informer, known, now)
        for promise in PROMISES:
            promise(state)
        decide(state)


def _make_state(informer: PodInformer, known: Record | None, now: datetime) -> LifecycleState:
    pods, deletions, ends = informer.observe(JOB.key)
    uids = [pod["metadata"]["uid"] for pod in pods]
    observed = Observation(
        pods=pods,
        deleted_uids=frozenset((UID, "uid-2")) - set(uids),
        deleted_outcomes=ends,
        deletions=deletions,
        read_ungated=set(uids),
        refreshed_at=dict.fromkeys(uids, now),
    )
    return LifecycleState(JOB, known, observed, now, SOURCE)


def test_no_pod_makes_the_engine_stumble_or_touch_what_is_not_its_own() -> None:
    play(st.tuples(_EVENTS, st.sampled_from(_RECORDS)), _hear_and_decide)
