"""Jobs of one container by other controllers and by the engine, on one API server in one run.

A job is started when its pod may be scheduled: it exists and has no scheduling gate. Time is taken
by one watch of this process. The pods have nobody as their scheduler, so none ever runs. Requests
are those in the jobs' namespace, by whomever, but for watches. Bytes are those that etcd keeps of
that namespace, keys included, Events left out.
"""

import base64
import json
import random
import statistics
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import urllib3

from benchmarks import peers
from benchmarks.bare import in_threads
from benchmarks.controllers import argo_workflows, tekton
from benchmarks.events import Starts
from benchmarks.figures import Bench, Figure, spread
from benchmarks.place import Place
from benchmarks.process import run
from benchmarks.specs import NOBODY
from benchmarks.staying import staying_engine
from tests.cluster.errors import ClusterUnavailable
from tests.support.client import Client
from tests.support.definitions import install_definitions

NAME = "peers-table"
_MOST_ROUNDS = 3
_QUIET = 2.0
"""Seconds without a request of the jobs after which nothing more is expected."""
_FASTER = 1000, 2000
"""Requests per second and burst: the cluster's controller manager has the same."""
_IMAGE = "registry.example/tools/build:3.20"
_CONTAINER = {"name": "main", "image": _IMAGE, "command": ["true"]}

_OK = 200

_Make = Callable[[str], dict[str, Any]]
_Write = Callable[[str, Sequence[str]], object]


def _job_spec(name: str) -> dict[str, Any]:
    spec = {"image": _IMAGE, "command": ["true"], "podPatch": {"spec": {"schedulerName": NOBODY}}}
    return _object("jobs.engine/v1alpha1", "JobSpec", name, spec)


def _workflow(name: str) -> dict[str, Any]:
    template = {"name": "main", "container": {"image": _IMAGE, "command": ["true"]}}
    spec = {"entrypoint": "main", "schedulerName": NOBODY, "templates": [template]}
    return _object("argoproj.io/v1alpha1", "Workflow", name, spec)


def _task_run(name: str) -> dict[str, Any]:
    """With what the webhook would set, which doesn't run."""
    defaults = {"serviceAccountName": "default", "timeout": "1h0m0s"}
    spec = {"podTemplate": {"schedulerName": NOBODY}, "taskSpec": {"steps": [_CONTAINER]}}
    made = _object("tekton.dev/v1", "TaskRun", name, {**spec, **defaults})
    made["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "tekton-pipelines"}
    return made


def _kubernetes_job(name: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "schedulerName": NOBODY, "containers": [_CONTAINER]}
    return _object("batch/v1", "Job", name, {"template": {"spec": pod}})


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a job's pod: what runs all the time, and what is done to start jobs."""

    label: str
    write: _Write
    """In this namespace, jobs of these names."""
    running: Callable[[str], AbstractContextManager[object]] = nullcontext
    as_installed: bool = False
    """With a limit of its own on requests, which makes fewer jobs enough."""


@dataclass(frozen=True, slots=True)
class _Cost:
    rate: float
    requests: float
    size: float


def measure(bench: Bench) -> Iterator[Figure]:
    """Also prints the table. Errors: RuntimeError on the sandbox."""
    place = bench.place
    if place.cluster is None:
        raise RuntimeError("other controllers are measured on a real control plane alone")
    install_definitions(Client.from_kubeconfig(place.kubeconfig))
    costs: dict[str, list[_Cost]] = defaultdict(list)
    latencies: dict[str, list[float]] = {}
    without: dict[str, str] = {}
    with ExitStack() as stack:
        ways = [*_engine(bench), *_peers(bench, stack, without)]
        for turn in range(min(bench.rounds, _MOST_ROUNDS)):
            at = turn % len(ways)
            for way in ways[at:] + ways[:at]:
                if way.label not in without and not (way.as_installed and turn):
                    with _or_why(way.label, without):
                        costs[way.label].append(_start(place, way, bench))
        for way in ways:
            if way.label not in without and not way.as_installed:
                with _or_why(way.label, without):
                    latencies[way.label] = _latencies(place, way, bench)
    columns = [*_columns(bench, costs, latencies)]
    print("\n".join(table(columns, without)))
    for one in columns:
        if values := one.of.pop("engine", ()):
            name = f"peers-{one.name}"
            yield Figure(
                name, one.what, one.unit, values, one.of, where=place.kind, without=without
            )


def _engine(bench: Bench) -> Iterator[Way]:
    place = bench.place

    def objects(namespace: str) -> AbstractContextManager[object]:
        return staying_engine(place, "--from-cluster", "-n", namespace, "--allow-empty")

    def files(namespace: str) -> AbstractContextManager[object]:
        (bench.folder / namespace).mkdir()
        return staying_engine(place, str(bench.folder / namespace), "--allow-empty")

    def drop(namespace: str, names: Sequence[str]) -> None:
        def one(name: str) -> None:
            hidden = bench.folder / namespace / f".{name}.new"
            hidden.write_text(json.dumps(_in(namespace, _job_spec(name))), encoding="utf-8")
            hidden.rename(hidden.with_name(f"{name}.yaml"))

        in_threads(one, names)

    yield Way("engine", _posting(place, _job_spec, "jobs.engine/v1alpha1", "jobspecs"), objects)
    yield Way("engine, dropped files", drop, files)


def _peers(bench: Bench, stack: ExitStack, without: dict[str, str]) -> Iterator[Way]:
    place = bench.place
    qps, burst = _FASTER
    for label, peer, make, where, faster in (
        (
            "Argo Workflows",
            argo_workflows,
            _workflow,
            ("argoproj.io/v1alpha1", "workflows"),
            (f"--qps={qps}", f"--burst={burst}"),
        ),
        (
            "Tekton",
            tekton,
            _task_run,
            ("tekton.dev/v1", "taskruns"),
            (f"-kube-api-qps={qps}", f"-kube-api-burst={burst}"),
        ),
    ):
        with _or_why(label, without):
            installed, post = stack.enter_context(peer(place)), _posting(place, make, *where)
            yield Way(label, post, _always(installed.running, *faster))
            slow = f"{label} as installed"
            yield Way(slow, post, _always(installed.running), as_installed=True)
    yield Way("Kubernetes Job", _posting(place, _kubernetes_job, "batch/v1", "jobs"))
    for tool in (peers.kubectl(place), peers.kapp(place)):
        label = f"Kubernetes Jobs by {tool.label}"
        if tool.command:
            yield Way(label, partial(_command, bench, tool))
        else:
            without[label] = tool.why


def _always(
    running: Callable[..., AbstractContextManager[None]], *options: str
) -> Callable[[str], AbstractContextManager[None]]:
    return lambda _namespace: running(*options)


def _posting(place: Place, make: _Make, version: str, plural: str) -> _Write:
    def post(namespace: str, names: Sequence[str]) -> None:
        path = f"/apis/{version}/namespaces/{namespace}/{plural}"
        in_threads(lambda name: place.bare.write("POST", path, make(name)), names)

    return post


def _command(bench: Bench, tool: peers.Peer, namespace: str, names: Sequence[str]) -> None:
    made = uuid.uuid4().hex[:8]
    file = bench.folder / f"{made}.json"
    items = [_in(namespace, _kubernetes_job(name)) for name in names]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    if "kapp" in tool.label:
        peers.kapp_deploy(tool.command, bench.place, namespace, file, made)
    else:
        run([*tool.command, "--filename", str(file)], environment=bench.place.environment)


def _in(namespace: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


@contextmanager
def _or_why(label: str, without: dict[str, str]) -> Iterator[None]:
    """What fails is a row without figures; the others go on."""
    try:
        yield
    except (RuntimeError, ClusterUnavailable) as error:
        print(f"bench: {label}: {error}", file=sys.stderr, flush=True)
        without[label] = str(error).strip().splitlines()[-1]


def _start(place: Place, way: Way, bench: Bench) -> _Cost:
    """Errors: RuntimeError where the jobs take too long."""
    assert place.cluster is not None
    names = _names(bench.size(100 if way.as_installed else 300, 20))
    with _ready(place, way) as (namespace, starts):
        before, since = _stored(place, namespace), place.cluster.audit_position()
        began = perf_counter()
        way.write(namespace, names)
        seconds = starts.of(names) - began
        asked = _settled(place, namespace, since)
        stored = _stored(place, namespace) - before
    return _Cost(len(names) / seconds, asked / len(names), stored / len(names) / 1024)


def _latencies(place: Place, way: Way, bench: Bench) -> list[float]:
    """Milliseconds, of one job after the other."""
    found = []
    with _ready(place, way) as (namespace, starts):
        for name in _names(bench.size(50, 5)):
            began = perf_counter()
            way.write(namespace, [name])
            found.append(1000 * (starts.of([name]) - began))
            time.sleep(random.uniform(0.05, 0.15))
    return found


def _names(count: int) -> list[str]:
    return [f"job-{number:05}" for number in range(count)]


@contextmanager
def _ready(place: Place, way: Way) -> Iterator[tuple[str, Starts]]:
    """A namespace with what runs all the time, after a job that shows that it does."""
    with place.namespace("peers") as namespace:
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        while place.bare.send("GET", account)[0] != _OK:
            time.sleep(0.1)
        with way.running(namespace), Starts(place, namespace, len("job-00000")) as starts:
            way.write(namespace, ["warm-up-1"])
            starts.of(["warm-up-1"])
            time.sleep(_QUIET)
            yield namespace, starts


def _settled(place: Place, namespace: str, since: int) -> int:
    """How much was asked, once nothing more is."""
    found = -1
    while (now := _asked(place, namespace, since)) != found:
        found = now
        time.sleep(_QUIET)
    return found


def _asked(place: Place, namespace: str, since: int) -> int:
    assert place.cluster is not None
    return len(
        {
            entry["auditID"]
            for entry in place.cluster.audit_entries("", since)
            if entry["verb"] != "watch" and entry.get("objectRef", {}).get("namespace") == namespace
        }
    )


def _stored(place: Place, namespace: str) -> int:
    assert place.cluster is not None
    option = "--listen-client-urls="
    etcd = place.cluster.component("etcd").argv
    url = next(one.removeprefix(option) for one in etcd if one.startswith(option))

    def read(prefix: str, *, keys_only: bool) -> list[dict[str, str]]:
        start, end = (
            base64.b64encode(one.encode()).decode() for one in (f"{prefix}/", f"{prefix}0")
        )
        body = {"key": start, "range_end": end, "keys_only": keys_only}
        answer = urllib3.request("POST", f"{url}/v3/kv/range", json=body)
        found: list[dict[str, str]] = answer.json().get("kvs", [])
        return found

    parts = (base64.b64decode(one["key"]).decode() for one in read("/registry", keys_only=True))
    of_namespace = (key.partition(f"/{namespace}/") for key in parts if f"/{namespace}/" in key)
    collections = {f"{before}/{namespace}" for before, _, _ in of_namespace}
    return sum(
        len(base64.b64decode(one["key"])) + len(base64.b64decode(one["value"]))
        for prefix in collections
        if not prefix.startswith("/registry/events/")
        for one in read(prefix, keys_only=False)
    )


@dataclass(frozen=True, slots=True)
class Column:
    """What was measured of each way."""

    name: str
    what: str
    unit: str
    of: dict[str, Sequence[float]]


def _columns(
    bench: Bench, costs: Mapping[str, Sequence[_Cost]], latencies: Mapping[str, Sequence[float]]
) -> Iterator[Column]:
    count, single = bench.size(300, 20), bench.size(50, 5)
    middle = {label: [statistics.median(values)] for label, values in latencies.items()}
    slowest = {label: [_p99(values)] for label, values in latencies.items()}
    yield Column("rate", f"{count} jobs at once", "jobs/s", _each(costs, "rate"))
    yield Column("p50", f"one job, p50 of {single}", "ms", {**middle})
    yield Column("p99", f"one job, p99 of {single}", "ms", {**slowest})
    yield Column("requests", "asked for each job", "requests", _each(costs, "requests"))
    yield Column("size", "kept in etcd for each job", "KiB", _each(costs, "size"))


def _each(costs: Mapping[str, Sequence[_Cost]], field: str) -> dict[str, Sequence[float]]:
    return {k: [getattr(cost, field) for cost in found] for k, found in costs.items() if found}


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def table(columns: Sequence[Column], without: Mapping[str, str]) -> Iterator[str]:
    """Markdown: a row for each way, and one for each that failed, with the reason."""
    yield "| | " + " | ".join(f"{one.what} ({one.unit})" for one in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for label in {label: None for one in columns for label in one.of}:
        cells = [spread(one.of[label]) if label in one.of else "" for one in columns]
        yield "| " + " | ".join([label, *cells]) + " |"
    yield from (f"| {label} | not measured: {why} |" for label, why in without.items())
