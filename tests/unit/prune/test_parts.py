"""The result of pruning, and what is printed of it."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from engine.cli.printers.prune import PrunePrinter, summary
from engine.errors import ClusterError, EngineError, ExitCode
from engine.prune.result import PruneAction, PruneEntry, PruneResult
from engine.refs import Ref
from engine.values import map_text
from tests.unit.strategies import any_text

REF = Ref("Pod", "ci", "a")


def entry(action: PruneAction, reason: str = "ttl 1s, age 2s") -> PruneEntry:
    return PruneEntry(REF, action, reason)


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
    assert summary(PruneResult()) == "0 deleted"
    counts = dict.fromkeys(PruneAction, 1)
    del counts[PruneAction.WOULD_DELETE], counts[PruneAction.INVALID]
    assert summary(PruneResult(counts=counts)) == "1 deleted, 1 kept, 1 protected, 1 failed"


def test_each_entry_warning_note_and_error_has_one_line() -> None:
    result = PruneResult(
        (entry(PruneAction.DELETED),), notes=("a",), warnings=("b",), errors=(EngineError("c"),)
    )
    assert map_text(result, str.upper).lines == (
        "pod/ci/a deleted: TTL 1S, AGE 2S", "warning: B", "note: A", "error: C",
    )  # fmt: skip
