"""What a scrape finds after things have happened."""

from collections.abc import Mapping

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from engine import __version__
from engine.api.model import PullClass
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    AttemptFailed,
    Event,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    Notice,
    ObjectPruned,
    PullPolicyFallback,
    Ready,
    SpecsRead,
    StateChanged,
)
from engine.telemetry.metrics import SOURCES, Metrics

KEY = JobKey("ci", "build")
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def values_of(metrics: Metrics) -> Values:
    """Every sample as a scraper reads it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(metrics.exposition("")[1].decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, /, **labels: str) -> float:
    return values_of(metrics)[name, tuple(sorted(labels.items()))]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.mark.parametrize(
    ("event", "name", "labels"),
    [
        (
            StateChanged(KEY, State.FAILED, Reason.OOM_KILLED, "x", 1),
            "engine_outcomes_total",
            {"reason": "OOMKilled"},
        ),
        (
            AttemptFailed(KEY, 1, "build-1", Reason.EVICTED, "x"),
            "engine_attempts_failed_total",
            {"reason": "Evicted"},
        ),
        (
            PullPolicyFallback(KEY, 1, "main", "i", "Always", "Never", "x", PullClass.TRANSIENT),
            "engine_pull_fallbacks_total",
            {"class": "transient"},
        ),
        (
            ObjectPruned(Ref("Pod", "ci", "build-1"), "deleted", "ttl 1s, age 2s"),
            "engine_pruned_objects_total",
            {"kind": "Pod", "action": "deleted"},
        ),
        (SpecsRead(3, 5, 5, 0, 0), "engine_spec_reads_total", {}),
    ],
)
def test_an_event_is_counted_each_time(
    metrics: Metrics, event: Event, name: str, labels: Mapping[str, str]
) -> None:
    metrics(event)
    metrics(event)
    assert value(metrics, name, **labels) == 2


def test_what_is_no_end_of_a_run_is_not_counted_as_one(metrics: Metrics) -> None:
    before = values_of(metrics)
    for event in (
        StateChanged(KEY, State.RUNNING),
        JobUnchanged(KEY, State.SUCCEEDED),
        Notice("x"),
        Ready(),
    ):
        metrics(event)
    after = values_of(metrics)
    ours = {key: number for key, number in after.items() if key[0].startswith("engine_")}
    ours = {key: number for key, number in ours.items() if key[0] != "engine_jobs"}
    assert ours == {key: before[key] for key in ours}


def test_outcomes_start_at_zero_so_that_the_first_one_counts_as_an_increase(
    metrics: Metrics,
) -> None:
    for reason in Reason:
        assert value(metrics, "engine_outcomes_total", reason=reason.value) == 0


def test_what_alerts_ask_for_starts_at_zero_so_that_the_first_one_counts_as_an_increase(
    metrics: Metrics,
) -> None:
    for error in ("ForbiddenError", "UnreachableError"):
        assert value(metrics, "engine_reconcile_errors_total", kind=error) == 0
    for pull_class in PullClass:
        assert value(metrics, "engine_pull_fallbacks_total", **{"class": pull_class.value}) == 0
    for reason in (one for one in Reason if one.state is State.FAILED):
        assert value(metrics, "engine_attempts_failed_total", reason=reason.value) == 0
    for kind in ("ConfigMap", "Pod", "Secret"):
        for action in ("deleted", "failed"):
            assert value(metrics, "engine_pruned_objects_total", kind=kind, action=action) == 0


def test_the_time_from_starting_to_running_is_that_of_jobs_that_came_to_run() -> None:
    now = 100.0
    metrics = Metrics(lambda: now)

    def tell(name: str, state: State, then: float) -> None:
        nonlocal now
        now = then
        metrics(StateChanged(JobKey("ci", name), state))

    tell("runs", State.STARTING, 100.0)
    tell("falls-back", State.STARTING, 100.0)
    tell("fails", State.STARTING, 100.0)
    tell("runs", State.RUNNING, 102.0)
    tell("runs", State.SUCCEEDED, 150.0)
    tell("falls-back", State.STARTING, 160.0)
    tell("falls-back", State.SUCCEEDED, 180.0)
    tell("fails", State.FAILED, 190.0)
    tell("unknown", State.RUNNING, 190.0)
    assert value(metrics, "engine_starting_seconds_count") == 2
    assert value(metrics, "engine_starting_seconds_sum") == 82


def test_a_job_that_another_engine_took_over_in_its_start_is_not_timed() -> None:
    now = 100.0
    metrics = Metrics(lambda: now)
    metrics(StateChanged(KEY, State.STARTING))
    metrics(LeaderChanged(leads=False, holder="other"))
    metrics(LeaderChanged(leads=True, holder="me"))
    now = 500.0
    metrics(StateChanged(KEY, State.RUNNING))
    assert value(metrics, "engine_starting_seconds_count") == 0


def test_the_number_of_files_is_that_of_the_last_reading(metrics: Metrics) -> None:
    metrics(SpecsRead(3, 5, 5, 0, 0))
    metrics(SpecsRead(2, 4, 0, 0, 1))
    assert value(metrics, "engine_spec_files") == 2


def test_sources_are_asked_at_each_scrape(metrics: Metrics) -> None:
    numbers = iter(range(1, 100))
    metrics.bind(
        {
            "engine_quota_waiting_jobs": lambda: 4,
            "engine_held_jobs": lambda: 11,
            "engine_spec_problems": lambda: 5,
            "engine_workqueue_depth": lambda: 6,
            "engine_workqueue_adds": lambda: next(numbers),
            "engine_workqueue_retries": lambda: 8,
            "engine_api_requests": lambda: 9,
            "engine_watch_restarts": lambda: 10,
        }
    )
    assert value(metrics, "engine_workqueue_adds_total") == 1
    found = values_of(metrics)
    assert found["engine_workqueue_adds_total", ()] == 2
    assert found["engine_quota_waiting_jobs", ()] == 4
    assert found["engine_held_jobs", ()] == 11
    assert found["engine_spec_problems", ()] == 5
    assert found["engine_workqueue_depth", ()] == 6
    assert found["engine_workqueue_retries_total", ()] == 8
    assert found["engine_api_requests_total", ()] == 9
    assert found["engine_watch_restarts_total", ()] == 10


def test_jobs_are_counted_by_their_present_state(metrics: Metrics) -> None:
    for event in (
        StateChanged(KEY, State.STARTING),
        StateChanged(KEY, State.RUNNING),
        JobUnchanged(JobKey("ci", "other"), State.SUCCEEDED),
        StateChanged(JobKey("ci", "gone"), State.QUEUED),
        JobUnmanaged(JobKey("ci", "gone")),
    ):
        metrics(event)
    counts = {state: value(metrics, "engine_jobs", state=state.value) for state in State}
    assert counts == {**dict.fromkeys(State, 0), State.RUNNING: 1, State.SUCCEEDED: 1}


def test_a_source_that_fails_costs_its_own_metric_only(metrics: Metrics) -> None:
    def broken() -> int:
        raise RuntimeError("dictionary changed size during iteration")

    metrics.bind({"engine_workqueue_depth": broken, "engine_api_requests": lambda: 7})
    found = values_of(metrics)
    assert found["engine_api_requests_total", ()] == 7
    names = {name for name, _ in found}
    assert "engine_workqueue_depth" not in names


def test_an_engine_leads_only_from_when_it_is_told_to(metrics: Metrics) -> None:
    assert value(metrics, "engine_leader") == 0
    metrics(LeaderChanged(leads=False, holder="other"))
    assert value(metrics, "engine_leader") == 0
    metrics(LeaderChanged(leads=True, holder="me"))
    assert value(metrics, "engine_leader") == 1


def test_looks_at_jobs_are_timed_and_their_errors_counted_by_kind(metrics: Metrics) -> None:
    metrics.observe_reconcile(0.03)
    metrics.observe_reconcile(0.2, "UnreachableError")
    metrics.queue_wait.observe(0.004)
    assert value(metrics, "engine_reconcile_duration_seconds_count") == 2
    assert value(metrics, "engine_reconcile_duration_seconds_bucket", le="0.05") == 1
    assert value(metrics, "engine_reconcile_errors_total", kind="UnreachableError") == 1
    assert value(metrics, "engine_workqueue_wait_seconds_bucket", le="0.005") == 1


def test_a_thousand_jobs_make_no_more_series_than_one(metrics: Metrics) -> None:
    def tell(name: str) -> None:
        key = JobKey("ci", name)
        metrics(StateChanged(key, State.FAILED, Reason.SCRIPT_FAILED, f"{name} failed", 1))
        metrics(AttemptFailed(key, 1, f"{name}-1", Reason.SCRIPT_FAILED, name))
        metrics(ObjectPruned(Ref("Pod", "ci", name), "deleted", name))

    tell("job")
    before = values_of(metrics).keys()
    for number in range(1000):
        tell(f"job-{number}")
    assert values_of(metrics).keys() == before
    assert b"job-" not in metrics.exposition("")[1]


def test_names_and_units_are_as_prometheus_asks_for(metrics: Metrics) -> None:
    metrics.bind(dict.fromkeys(SOURCES, int))
    for family in metrics.registry.collect():
        assert family.name.startswith(("engine_", "process_"))
        assert family.documentation
        assert not family.name.endswith(("_ms", "_minutes", "_total"))
    names = {name for name, _ in values_of(metrics)}
    assert not [name for name in names if name.endswith("_created")]


def test_the_version_and_the_process_are_told(metrics: Metrics) -> None:
    found = values_of(metrics)
    assert found["engine_build_info", (("version", __version__),)] == 1
    assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_a_scraper_that_asks_for_openmetrics_gets_it(metrics: Metrics) -> None:
    metrics(SpecsRead(1, 1, 1, 0, 0))
    content_type, content = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = {family.name for family in parse_openmetrics(content.decode())}  # type: ignore[no-untyped-call]
    assert {"engine_spec_reads", "engine_reconcile_duration_seconds"} <= families


def test_two_of_them_in_one_process_count_apart(metrics: Metrics) -> None:
    other = Metrics()
    other(SpecsRead(1, 1, 1, 0, 0))
    assert value(metrics, "engine_spec_reads_total") == 0
