"""The metrics themselves: the one table of names, types and words. Imports prometheus_client."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
from engine.status.outcome import Reason, State

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class GaugeSources:
    """What is asked at each scrape; a metric without a source is left out.

    Each is called from the server's thread and has to be quick.
    """

    jobs: Callable[[], Mapping[State, int]] | None = None
    """Jobs by state."""
    quota_waiting: Callable[[], int] | None = None
    """Jobs that wait for room in a quota."""
    spec_problems: Callable[[], int] | None = None
    """Problems of spec files, warnings not counted."""
    queue_depth: Callable[[], int] | None = None
    """Jobs that are ready to be reconciled."""
    queue_adds: Callable[[], int] | None = None
    """Adds to the work queue since the start; never goes down."""
    queue_retries: Callable[[], int] | None = None
    """Adds after an error since the start; never goes down."""
    internal_errors: Callable[[], int] | None = None
    """Errors of the engine itself since the start; never goes down."""
    api_requests: Callable[[], int] | None = None
    """Requests since the start; never goes down."""
    watch_restarts: Callable[[], int] | None = None
    """Watches opened again since the start; never goes down."""


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
        sources = self.sources
        asked: tuple[tuple[type[Any], str, str, Callable[[], int] | None], ...] = (
            (
                GaugeMetricFamily,
                "engine_quota_waiting_jobs",
                "Jobs that wait for room in a quota.",
                sources.quota_waiting,
            ),
            (
                GaugeMetricFamily,
                "engine_spec_problems",
                "Problems of spec files, warnings not counted.",
                sources.spec_problems,
            ),
            (
                GaugeMetricFamily,
                "engine_workqueue_depth",
                "Jobs that are ready to be looked at.",
                sources.queue_depth,
            ),
            (
                CounterMetricFamily,
                "engine_workqueue_adds",
                "Jobs put into the work queue.",
                sources.queue_adds,
            ),
            (
                CounterMetricFamily,
                "engine_workqueue_retries",
                "Jobs put into the work queue once more after an error.",
                sources.queue_retries,
            ),
            (
                CounterMetricFamily,
                "engine_internal_errors",
                "Defects of the engine that were contained.",
                sources.internal_errors,
            ),
            (
                CounterMetricFamily,
                "engine_api_requests",
                "Requests to the API server, watches included.",
                sources.api_requests,
            ),
            (
                CounterMetricFamily,
                "engine_watch_restarts",
                "Watches that were opened again after they broke.",
                sources.watch_restarts,
            ),
        )
        for family, name, words, ask in asked:
            yield from _single(family, name, words, ask)
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


def _single(
    family: type[Any], name: str, words: str, ask: Callable[[], int] | None
) -> Iterator[Metric]:
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
            "Containers that go on with their next pull policy, by what was wrong.",
            ["class"],
            registry=registry,
        )
        self.pruned = Counter(
            "engine_pruned_objects",
            "Objects that the pruning rule dealt with.",
            ["kind", "action"],
            registry=registry,
        )
        self.reconcile_duration = Histogram(
            "engine_reconcile_duration_seconds",
            "How long one look at one job takes, requests included.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "engine_reconcile_errors",
            "Looks at a job that ended with an error.",
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

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Content type and text of all metrics, in the format that an Accept header asks for."""
        generate, content_type = choose_encoder(accept)
        return content_type, generate(self.registry)
