"""The small parts that a run of pruning is made of, and what it prints."""

import io
import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.cli.printers.prune import JsonPrunePrinter, TextPrunePrinter, notes, summary
from engine.errors import ClusterError, EngineError, ExitCode
from engine.prune.delete import DeleteBudget
from engine.prune.result import KeepReason, PruneAction, PruneEntry, PruneResult, ResultCollector
from engine.prune.run import newest_failed
from engine.refs import Ref
from tests.unit.strategies import any_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REF = Ref("Pod", "ci", "a")


def entry(action: PruneAction, reason: str = "ttl 1s, age 2s", **more: object) -> PruneEntry:
    return PruneEntry(REF, action, reason, **more)  # type: ignore[arg-type]


def test_a_budget_lets_so_many_through_and_takes_back_what_was_not_used() -> None:
    budget = DeleteBudget(2)
    assert [budget.acquire() for _ in range(3)] == [True, True, False]
    budget.release()
    assert [budget.acquire(), budget.acquire()] == [True, False]


def test_without_a_limit_the_budget_never_ends() -> None:
    budget = DeleteBudget(None)
    assert all(budget.acquire() for _ in range(1000))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 50))), st.integers(0, 4))
def test_the_newest_failed_pods_of_each_job_are_kept(
    pods: list[tuple[str, int]], count: int
) -> None:
    found = newest_failed(
        (
            {
                "namespace": "ci",
                "name": f"{job}-0123abcd-{at + 1}",
                "uid": f"{job}-{age:02}-{at}",
                "creationTimestamp": f"2026-03-01T12:00:{age:02}Z",
            }
            for at, (job, age) in enumerate(pods)
        ),
        count,
    )
    for job in "ab":
        ages = sorted(age for name, age in pods if name == job)
        kept = sorted(int(uid.split("-")[1]) for uid in found if uid.startswith(job))
        assert kept == (ages[-count:] if count else [])


def test_the_exit_code_is_zero_only_if_everything_that_should_go_went() -> None:
    assert PruneResult({PruneAction.DELETED: 3, PruneAction.INVALID: 1}).exit_code is ExitCode.OK
    assert PruneResult({PruneAction.FAILED: 1}).exit_code is ExitCode.JOB_FAILED
    lost = (EngineError("a"), ClusterError("b"))
    assert PruneResult(errors=lost).exit_code is ExitCode.CLUSTER


@given(st.lists(any_text, max_size=4), st.lists(any_text, max_size=2))
def test_what_is_written_piece_by_piece_is_one_json_document(
    reasons: list[str], errors: list[str]
) -> None:
    out = io.StringIO()
    printer = JsonPrunePrinter(out)
    for reason in reasons:
        printer.entry(entry(PruneAction.KEPT, reason))
    printer.end([EngineError(error) for error in errors])
    whole = json.loads(out.getvalue())
    assert [e["reason"] for e in whole["pruned"]] == reasons
    assert whole["errors"] == errors


def test_each_object_has_one_line_whatever_its_reason_holds() -> None:
    out = io.StringIO()
    TextPrunePrinter(out).entry(entry(PruneAction.FAILED, "denied:\nnot\ttoday"))
    assert out.getvalue() == "failed        pod/ci/a  denied: not today\n"


def test_the_summary_says_what_stays_and_why() -> None:
    collector = ResultCollector(lambda _: None)
    collector.add(entry(PruneAction.DELETED))
    collector.add(entry(PruneAction.FAILED))
    collector.add(entry(PruneAction.PROTECTED))
    for hours in (3, 1):
        until = NOW + timedelta(hours=hours)
        collector.add(entry(PruneAction.KEPT, why=KeepReason.NOT_EXPIRED, until=until))
    collector.add_without_ttl()
    assert summary(collector.result(), NOW) == (
        "1 deleted, 1 failed; stays: 2 not expired, 1 protected, 1 without a TTL; "
        "the next expires in 1h"
    )


def test_what_was_left_alone_has_one_line_each() -> None:
    collector = ResultCollector(lambda _: None)
    assert notes(collector.result()) == []
    collector.add_unnamed(frozenset({"janitor/ttl"}))
    collector.add_system("kube-system")
    one = notes(collector.result())
    assert one == [
        "note: 1 object carries janitor/ttl, which isn't among --annotation: left alone",
        "note: 1 object carries a TTL in kube-system: left alone unless -n names it",
    ]
    collector.add_unnamed(frozenset({"x/ttl"}))
    collector.add_system("kube-public")
    collector.add_warning("the limit is reached")
    assert notes(collector.result()) == [
        "warning: the limit is reached",
        "note: 2 objects carry janitor/ttl or x/ttl, which aren't among --annotation: left alone",
        "note: 2 objects carry a TTL in kube-public, kube-system: left alone unless -n names it",
    ]
