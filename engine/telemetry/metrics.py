"""Metrics of an engine that stays. Imports prometheus_client, which most commands never need.

No label holds a job's name, so that the number of series doesn't grow with the jobs.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from engine import __version__
from engine.api.model import PullClass
from engine.errors import ForbiddenError, UnreachableError
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.telemetry import events
from engine.telemetry.events import Event

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MINUTES = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0)
# What alerts ask for; other values have a series once they were met.
_FAILURES = [one for one in Reason if one.state is State.FAILED]
_ERRORS = [error.__name__ for error in (ForbiddenError, UnreachableError)]
_KINDS, _ACTIONS = ("ConfigMap", "Pod", "Secret"), ("deleted", "failed")

_GAUGES = {
    "engine_quota_waiting_jobs": "Jobs that wait for room in a quota, or for their record.",
    "engine_held_jobs": (
        "Jobs that may not start because more new runs would than maxStarts allows."
    ),
    "engine_spec_problems": "Errors in spec files; warnings are not counted.",
    "engine_workqueue_depth": "Jobs that are ready to be reconciled.",
}
_COUNTERS = {
    "engine_workqueue_adds": "Jobs put into the work queue.",
    "engine_workqueue_retries": "Jobs put into the work queue once more after an error.",
    "engine_internal_errors": (
        "Defects of the engine that were contained; the log has their tracebacks."
    ),
    "engine_api_requests": "Requests to the API server, watches included.",
    "engine_watch_restarts": "Watches that were opened again after they broke.",
}
SOURCES = (*_GAUGES, *_COUNTERS)
"""Metrics that are asked for at each scrape; `Metrics.bind` gets a source for each."""


class Metrics(Collector):
    """An `Emit` listener with a registry of its own; safe to use from several threads.

    Guarantees: listening never raises and does no I/O. A source that raises costs its own metric
    in that scrape, nothing else. Labels whose values are known start at 0.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._starting_since: dict[JobKey, float] = {}
        self._states: dict[JobKey, State] = {}
        self._sources: Mapping[str, Callable[[], int]] = {}
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = prometheus.CollectorRegistry()

        def counter(name: str, words: str, **labels: Iterable[str]) -> prometheus.Counter:
            made = prometheus.Counter(name, words, labels, registry=registry)
            for values in product(*labels.values()) if labels else ():
                # An alert sees an increase only of a series that was there before.
                made.labels(*values)
            return made

        histogram = partial(prometheus.Histogram, registry=registry)
        gauge = partial(prometheus.Gauge, registry=registry)
        words = "Runs that ended, by outcome."
        self._outcomes = counter("engine_outcomes", words, reason=Reason)
        words = "Attempts that failed, by outcome; not those that another pull policy answers."
        self._attempts_failed = counter("engine_attempts_failed", words, reason=_FAILURES)
        words = "Containers that go on with their next pull policy, by the class of the failure."
        self._pull_fallbacks = counter("engine_pull_fallbacks", words, **{"class": PullClass})
        words = "Objects that pruning judged, by the result: deleted, failed, invalid, …"
        self._pruned = counter("engine_pruned_objects", words, kind=_KINDS, action=_ACTIONS)
        words = "How long jobs were Starting before they ran: scheduling and pulling included."
        self._starting = histogram("engine_starting_seconds", words, buckets=_MINUTES)
        words = "How long one reconcile of one job takes, requests included."
        self._duration = histogram("engine_reconcile_duration_seconds", words, buckets=_SECONDS)
        words = "Reconciles of a job that ended with an error, by its kind: UnreachableError, say."
        self._errors = counter("engine_reconcile_errors", words, kind=_ERRORS)
        words = "How long a job was ready before a worker took it."
        self.queue_wait = histogram("engine_workqueue_wait_seconds", words, buckets=_SECONDS)
        self._spec_files = gauge("engine_spec_files", "Spec files at the last reading.")
        self._spec_reads = counter("engine_spec_reads", "How often the specs were read.")
        words = "1 while this engine holds a Lease of its source, 0 while it does not."
        self._leader = gauge("engine_leader", words)
        info = prometheus.Info("engine_build", "The version of the engine.", registry=registry)
        info.info({"version": __version__})
        prometheus.ProcessCollector(registry=registry)
        registry.register(self)

    def bind(self, sources: Mapping[str, Callable[[], int]]) -> None:
        """From now on ask these, by metric; one without a source is left out.

        They are called from the server's threads and have to be quick.
        """
        self._sources = sources

    def __call__(self, event: Event) -> None:
        """Count the event."""
        match event:
            case events.StateChanged(key, state, reason):
                self._observe_start(key, state)
                self._states[key] = state
                if state.is_final:
                    self._outcomes.labels(reason or state).inc()
            case events.JobUnchanged(key, state):
                self._states[key] = state
            case events.JobUnmanaged(key):
                self._states.pop(key, None)
            case events.AttemptFailed(_, _, _, reason):
                self._attempts_failed.labels(reason).inc()
            case events.PullPolicyFallback():
                self._pull_fallbacks.labels(event.pull_class).inc()
            case events.ObjectPruned(ref, action):
                self._pruned.labels(ref.kind, action).inc()
            case events.SpecsRead(files):
                self._spec_reads.inc()
                self._spec_files.set(files)
            case events.LeaderChanged(leads):
                self._leader.set(leads)
                self._starting_since.clear()
            case _:
                pass

    def observe_reconcile(self, seconds: float, error: str = "") -> None:
        """One reconcile of one job; `error` is the name of the error's class, "" without one."""
        self._duration.observe(seconds)
        if error:
            self._errors.labels(error).inc()

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Content type and text of all metrics, in the format that an Accept header asks for."""
        generate, content_type = choose_encoder(accept)
        return content_type, generate(self.registry)

    def describe(self) -> list[Metric]:
        """Empty, so that registering doesn't call `collect`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics that are asked for at each scrape."""
        jobs = GaugeMetricFamily("engine_jobs", "Jobs by state.", labels=["state"])
        counts = Counter(self._states.copy().values())
        for state in State:
            jobs.add_metric([state], counts[state])
        yield jobs
        for family, metrics in (GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS):
            for name, words in metrics.items():
                if name not in self._sources:
                    continue
                try:
                    value = self._sources[name]()
                except Exception:  # noqa: BLE001,S112 - one number less must not cost the others
                    continue
                yield family(name, words, value=value)

    def _observe_start(self, key: JobKey, state: State) -> None:
        """A run that began and ended between two reconciles counts with its running."""
        if state is State.STARTING:
            self._starting_since.setdefault(key, self._monotonic())
            return
        since = self._starting_since.pop(key, None)
        if since is not None and state in (State.RUNNING, State.SUCCEEDED):
            self._starting.observe(self._monotonic() - since)
