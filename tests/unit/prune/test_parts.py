"""The small parts that a run of pruning is made of, and what it prints."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from engine.cli.printers.prune import PrunePrinter, summary
from engine.errors import ClusterError, EngineError, ExitCode
from engine.prune.delete import DeleteBudget
from engine.prune.result import PruneAction, PruneEntry, PruneResult
from engine.prune.run import ResultCollector
from engine.refs import Ref
from tests.unit.strategies import any_text

REF = Ref("Pod", "ci", "a")


def entry(action: PruneAction, reason: str = "ttl 1s, age 2s") -> PruneEntry:
    return PruneEntry(REF, action, reason)


def test_a_budget_lets_so_many_through_and_takes_back_what_was_not_used() -> None:
    budget = DeleteBudget(2)
    assert [budget.acquire() for _ in range(3)] == [True, True, False]
    budget.release()
    assert [budget.acquire(), budget.acquire()] == [True, False]
    assert budget.warning == "the limit of 2 deletes is reached, 2 more would go"


def test_without_a_limit_the_budget_never_ends() -> None:
    budget = DeleteBudget(None)
    assert all(budget.acquire() for _ in range(1000))
    assert budget.warning == ""


def test_the_exit_code_is_zero_only_if_everything_that_should_go_went() -> None:
    assert (
        PruneResult(counts={PruneAction.DELETED: 3, PruneAction.INVALID: 1}).exit_code
        is ExitCode.OK
    )
    assert PruneResult(counts={PruneAction.FAILED: 1}).exit_code is ExitCode.JOB_FAILED
    lost = (EngineError("a"), ClusterError("b"))
    assert PruneResult(errors=lost).exit_code is ExitCode.CLUSTER


@given(st.lists(any_text, max_size=4), st.lists(any_text, max_size=2))
def test_what_is_written_piece_by_piece_is_one_json_document(
    reasons: list[str], errors: list[str]
) -> None:
    out = io.StringIO()
    printer = PrunePrinter(out, "json")
    for reason in reasons:
        printer.entry(entry(PruneAction.KEPT, reason))
    printer.end([EngineError(error) for error in errors])
    whole = json.loads(out.getvalue())
    assert [e["reason"] for e in whole["pruned"]] == reasons
    assert whole["errors"] == errors


def test_each_object_has_one_line_whatever_its_reason_holds() -> None:
    out = io.StringIO()
    PrunePrinter(out, "table").entry(entry(PruneAction.FAILED, "denied:\nnot\ttoday"))
    assert out.getvalue() == "failed        pod/ci/a  denied: not today\n"


def test_the_summary_counts_the_ends_of_objects() -> None:
    collector = ResultCollector(lambda _: None)
    assert summary(collector.result("")) == "0 deleted"
    for action in (PruneAction.FAILED, PruneAction.DELETED, PruneAction.PROTECTED):
        collector.add(entry(action))
    collector.add(entry(PruneAction.KEPT))
    assert summary(collector.result("")) == "1 deleted, 1 kept, 1 protected, 1 failed"


def test_objects_that_were_not_named_are_counted_in_one_line() -> None:
    collector = ResultCollector(lambda _: None)
    assert collector.result("").note_lines == ()
    collector.unnamed.update(["with janitor/ttl", "in kube-system", "with janitor/ttl"])
    assert collector.result("the limit is reached").note_lines == (
        "warning: the limit is reached",
        (
            "note: left alone, because neither --annotation nor -n names them: "
            "1 in kube-system, 2 with janitor/ttl"
        ),
    )
