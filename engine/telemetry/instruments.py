"""The metrics themselves: the one table of names, types and words. Imports prometheus_client."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from engine import __version__
from engine.api.model import PullClass
from engine.errors import ForbiddenError, UnreachableError
from engine.status.outcome import Reason, State

Ask = Callable[[], int] | None
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MINUTES = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class GaugeSources:
    """What is asked at each scrape, as which metric; one without a source is left out.

    Each is called from the server's thread and has to be quick.
    """

    jobs: Callable[[], Mapping[State, int]] | None = None
    """Jobs by state."""
    quota_waiting: Annotated[
        Ask,
        GaugeMetricFamily,
        "engine_quota_waiting_jobs",
        "Jobs that wait for room in a quota, or for room for their record.",
    ] = None
    held: Annotated[
        Ask,
        GaugeMetricFamily,
        "engine_held_jobs",
        "Jobs that may not start because more new runs would than maxStarts allows.",
    ] = None
    spec_problems: Annotated[
        Ask,
        GaugeMetricFamily,
        "engine_spec_problems",
        "Errors in spec files; warnings are not counted.",
    ] = None
    queue_depth: Annotated[
        Ask, GaugeMetricFamily, "engine_workqueue_depth", "Jobs that are ready to be reconciled."
    ] = None
    queue_adds: Annotated[
        Ask, CounterMetricFamily, "engine_workqueue_adds", "Jobs put into the work queue."
    ] = None
    queue_retries: Annotated[
        Ask,
        CounterMetricFamily,
        "engine_workqueue_retries",
        "Jobs put into the work queue once more after an error.",
    ] = None
    internal_errors: Annotated[
        Ask,
        CounterMetricFamily,
        "engine_internal_errors",
        "Defects of the engine that were contained; the log has their tracebacks.",
    ] = None
    api_requests: Annotated[
        Ask,
        CounterMetricFamily,
        "engine_api_requests",
        "Requests to the API server, watches included.",
    ] = None
    watch_restarts: Annotated[
        Ask,
        CounterMetricFamily,
        "engine_watch_restarts",
        "Watches that were opened again after they broke.",
    ] = None


class ScrapeCollector(Collector):
    """Metrics whose values are asked for at each scrape."""

    def __init__(self) -> None:
        self.sources = GaugeSources()
        self.leads = False

    def describe(self) -> list[Metric]:
        """Nothing: the registry need not ask to know the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; one that can't be asked is left out."""
        for source in fields(self.sources):
            if source.name != "jobs":
                annotated: Any = source.type
                yield from _single(getattr(self.sources, source.name), *annotated.__metadata__)
        yield from self._jobs()
        words = "1 while this engine leads its source, 0 while it does not."
        yield GaugeMetricFamily("engine_leader", words, float(self.leads))

    def _jobs(self) -> Iterator[Metric]:
        if self.sources.jobs is None:
            return
        try:
            counts = self.sources.jobs()
        except Exception:  # noqa: BLE001 - one number less must not cost all the others
            return
        found = GaugeMetricFamily("engine_jobs", "Jobs by state.", labels=["state"])
        for state in State:
            found.add_metric([state], counts.get(state, 0))
        yield found


def _single(ask: Ask, family: type[Any], name: str, words: str) -> Iterator[Metric]:
    if ask is None:
        return
    try:
        yield family(name, words, value=ask())
    except Exception:  # noqa: BLE001 - one number less must not cost all the others
        return


class Instruments:
    """Every metric, in a registry of its own. Labels whose values are known start at 0."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self.outcomes = Counter(
            "engine_outcomes", "Runs that ended, by outcome.", ["reason"], registry=registry
        )
        self.attempts_failed = Counter(
            "engine_attempts_failed",
            "Attempts that failed, by outcome; not those that another pull policy answers.",
            ["reason"],
            registry=registry,
        )
        self.pull_fallbacks = Counter(
            "engine_pull_fallbacks",
            "Containers that go on with their next pull policy, by the class of the failure.",
            ["class"],
            registry=registry,
        )
        self.pruned = Counter(
            "engine_pruned_objects",
            "Objects that pruning judged, by the result: deleted, failed, invalid, …",
            ["kind", "action"],
            registry=registry,
        )
        self.starting = Histogram(
            "engine_starting_seconds",
            "How long jobs were Starting before they ran: scheduling and pulling included.",
            buckets=_MINUTES,
            registry=registry,
        )
        self.reconcile_duration = Histogram(
            "engine_reconcile_duration_seconds",
            "How long one reconcile of one job takes, requests included.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "engine_reconcile_errors",
            "Reconciles of a job that ended with an error, by its kind: UnreachableError, say.",
            ["kind"],
            registry=registry,
        )
        self.queue_wait = Histogram(
            "engine_workqueue_wait_seconds",
            "How long a job was ready before a worker took it.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.spec_files = Gauge(
            "engine_spec_files", "Spec files at the last reading.", registry=registry
        )
        self.spec_reads = Counter(
            "engine_spec_reads", "How often the specs were read.", registry=registry
        )
        Info("engine_build", "The version of the engine.", registry=registry).info(
            {"version": __version__}
        )
        ProcessCollector(registry=registry)
        self.asked = ScrapeCollector()
        registry.register(self.asked)
        for reason in Reason:
            self.outcomes.labels(reason)
            if reason not in (Reason.SUCCEEDED, Reason.CANCELLED):
                self.attempts_failed.labels(reason)
        for pull_class in PullClass:
            self.pull_fallbacks.labels(pull_class)
        for error in (ForbiddenError, UnreachableError):
            self.reconcile_errors.labels(error.__name__)
        for kind in ("ConfigMap", "Pod", "Secret"):
            for action in ("deleted", "failed"):
                self.pruned.labels(kind, action)

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Content type and text of all metrics, in the format that an Accept header asks for."""
        generate, content_type = choose_encoder(accept)
        return content_type, generate(self.registry)
