"""The small parts that a run of pruning is made of, and what it prints."""

import io
import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.cli.printers.prune import Json, Lines, summary
from engine.errors import ClusterError, EngineError, ExitCode
from engine.prune.brake import Brake
from engine.prune.last_failed import youngest
from engine.prune.result import PruneAction, PruneEntry, PruneResult, Tally, Why
from engine.prune.uids import UidSet
from engine.refs import Ref
from tests.unit.strategies import any_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REF = Ref("Pod", "ci", "a")


def entry(action: PruneAction, reason: str = "ttl 1s, age 2s", **more: object) -> PruneEntry:
    return PruneEntry(REF, action, reason, **more)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.uuids().map(str))), st.lists(st.uuids().map(str)))
def test_a_set_of_uids_has_what_was_added_and_nothing_else(
    added: list[list[str]], others: list[str]
) -> None:
    uids = UidSet()
    for some in added:
        uids.add(some)
        assert all(uid in uids for uid in some)
    known = {uid for some in added for uid in some}
    assert [uid for uid in others if uid in uids] == [uid for uid in others if uid in known]


def test_a_brake_lets_so_many_through_and_takes_back_what_was_not_used() -> None:
    brake = Brake(2)
    assert [brake.take() for _ in range(3)] == [True, True, False]
    brake.give_back()
    assert [brake.take(), brake.take()] == [True, False]


def test_without_a_limit_the_brake_never_holds() -> None:
    brake = Brake(None)
    assert all(brake.take() for _ in range(1000))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 50))), st.integers(0, 4))
def test_the_youngest_failed_pods_of_each_job_are_kept(
    pods: list[tuple[str, int]], count: int
) -> None:
    found = youngest(
        (
            {
                "namespace": "ci",
                "uid": f"{job}-{age:02}-{at}",
                "labels": {"jobs.engine/job": job},
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
    printer = Json(out)
    for reason in reasons:
        printer.entry(entry(PruneAction.KEPT, reason))
    printer.end([EngineError(error) for error in errors])
    whole = json.loads(out.getvalue())
    assert [e["reason"] for e in whole["pruned"]] == reasons
    assert whole["errors"] == errors


def test_each_object_has_one_line_whatever_its_reason_holds() -> None:
    out = io.StringIO()
    Lines(out).entry(entry(PruneAction.FAILED, "denied:\nnot\ttoday"))
    assert out.getvalue() == "failed        pod/ci/a  denied: not today\n"


def test_the_summary_says_what_stays_and_why() -> None:
    tally = Tally(lambda _: None)
    tally.add(entry(PruneAction.DELETED))
    tally.add(entry(PruneAction.FAILED))
    tally.add(entry(PruneAction.PROTECTED))
    for hours in (3, 1):
        until = NOW + timedelta(hours=hours)
        tally.add(entry(PruneAction.KEPT, why=Why.YOUNG, until=until))
    tally.add_unmarked()
    assert summary(tally.result(), NOW) == (
        "1 deleted, 1 failed; stays: 2 not expired, 1 protected, 1 without a TTL; "
        "the next expires in 1h"
    )
