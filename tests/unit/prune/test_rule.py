"""The rule: what outlived its TTL goes, and nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.durations import parse_duration
from engine.prune.result import PruneAction
from engine.prune.rule import Verdict, evaluate, evaluate_record, is_stuck, unnamed_ttls
from engine.wellknown import (
    EXPIRES_AT,
    FOREIGN_TTLS,
    HOLD,
    OPT_IN_TTLS,
    ORPHANED_SINCE,
    SCHEDULING,
    TTL,
    TTL_FROM,
)
from tests.unit.strategies import any_text

CREATED = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
FOREIGN = (*FOREIGN_TTLS, *OPT_IN_TTLS)
TTLS = (TTL, *FOREIGN)


def metadata(annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "annotations": annotations,
        **more,
    }


def action(verdict: Verdict | None) -> PruneAction | None:
    return verdict and verdict[0]


def reason(verdict: Verdict | None) -> str:
    return verdict[1] if verdict else ""


def after(seconds: float, annotations: dict[str, str], **more: Any) -> Verdict | None:
    """The verdict where every known annotation is named."""
    return evaluate(metadata(annotations, **more), CREATED + timedelta(seconds=seconds), FOREIGN)


POD_HELD_BACK = {TTL: "100", TTL_FROM: SCHEDULING}


def pod_after(seconds: float, status: dict[str, Any], **more: Any) -> Verdict | None:
    """The verdict on a pod that others held back at first."""
    of_pod = metadata(POD_HELD_BACK | more.pop("annotations", {}))
    pod = {"metadata": of_pod, "spec": more, "status": status}
    return evaluate(of_pod, CREATED + timedelta(seconds=seconds), FOREIGN, pod)


def test_a_pod_that_others_hold_back_with_a_gate_is_protected_however_old_it_is() -> None:
    words = "held by the scheduling gate kueue.x-k8s.io/admission"
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    assert pod_after(10**7, {"phase": "Pending"}, schedulingGates=gates) == (
        PruneAction.PROTECTED,
        words,
    )


def test_nor_does_its_ttl_begin_before_it_has_a_node() -> None:
    assert action(pod_after(10**7, {"phase": "Pending"})) is PruneAction.PROTECTED


def test_the_ttl_of_a_pod_that_others_held_back_counts_from_its_scheduling() -> None:
    since = {"lastTransitionTime": "2026-03-01T13:00:00Z"}
    scheduled = {"conditions": [{"type": "PodScheduled", "status": "True", **since}]}
    kept = pod_after(3600 + 99, scheduled)
    assert action(kept) is PruneAction.KEPT
    assert pod_after(3600 + 101, scheduled) == (PruneAction.DELETED, "ttl 100s, age 101s")


def test_what_has_ended_without_a_node_goes_by_its_age() -> None:
    assert action(pod_after(101, {"phase": "Failed"})) is PruneAction.DELETED


def test_a_time_that_was_told_holds_for_a_pod_that_is_held_back_too() -> None:
    told = {EXPIRES_AT: "2026-03-01T12:00:10Z"}
    assert action(pod_after(11, {"phase": "Pending"}, annotations=told)) is PruneAction.DELETED


def is_readable(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return text.strip() == "forever"
    return True


def test_three_hours_and_twenty_minutes_with_11700_goes_and_one_hour_stays() -> None:
    assert after(12_000, {TTL: "11700"}) == (PruneAction.DELETED, "ttl 11700s, age 12000s")
    kept = after(3_600, {TTL: "11700"})
    assert action(kept) is PruneAction.KEPT
    assert reason(kept) == "ttl 11700s, age 3600s, expires in 2h15m"


@pytest.mark.parametrize("name", TTLS)
@pytest.mark.parametrize("text", ["11700", "3h15m", "195m", "2h75m", " 11700 "])
def test_every_annotation_is_read_in_every_format(name: str, text: str) -> None:
    assert after(11_701, {name: text}) == (PruneAction.DELETED, "ttl 11700s, age 11701s")
    assert action(after(11_699, {name: text})) is PruneAction.KEPT


def test_it_goes_only_once_the_ttl_is_over_not_at_its_very_end() -> None:
    assert action(after(60, {TTL: "60"})) is PruneAction.KEPT
    assert action(after(60.001, {TTL: "60"})) is PruneAction.DELETED


@pytest.mark.parametrize(("text", "seconds"), [("7d", 604_800), ("1w", 604_800), ("0", 0)])
def test_days_weeks_and_nothing_at_all(text: str, seconds: int) -> None:
    assert action(after(seconds, {TTL: text})) is PruneAction.KEPT
    assert action(after(seconds + 1, {TTL: text})) is PruneAction.DELETED


@pytest.mark.parametrize(
    "text", ["2026-03-01T13:00:00Z", "2026-03-01T14:00:00+01:00", "2026-03-01T13:00:00.000Z"]
)
def test_an_absolute_time_counts_whatever_the_age(text: str) -> None:
    assert after(7_200, {EXPIRES_AT: text}) == (
        PruneAction.DELETED,
        f"expires-at {datetime.fromisoformat(text).isoformat().replace('+00:00', 'Z')}, 1h ago",
    )
    assert action(after(3_600, {EXPIRES_AT: text})) is PruneAction.KEPT


def test_the_absolute_time_wins_over_the_ttl_in_both_directions() -> None:
    later = {TTL: "60", EXPIRES_AT: "2026-03-02T12:00:00Z"}
    assert action(after(3_600, later)) is PruneAction.KEPT
    sooner = {TTL: "7d", EXPIRES_AT: "2026-03-01T12:10:00Z"}
    assert action(after(3_600, sooner)) is PruneAction.DELETED


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2026-03-01", "2026-03-01T13:00:00", "2026-13-01T00:00:00Z", "1772366400",
     "2026-03-01T25:00:00Z", "2026-03-01 13:00:00Z"],
)  # fmt: skip
def test_a_time_that_is_not_rfc_3339_never_deletes(text: str) -> None:
    assert action(after(10**9, {EXPIRES_AT: text})) is PruneAction.INVALID


@pytest.mark.parametrize("name", TTLS)
@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "5 m", "1h-", "1,5h", "1e3", "٣", "h", "Forever!", "9" * 400, "None"]
)
def test_a_ttl_that_cannot_be_read_is_told_with_its_annotation(name: str, text: str) -> None:
    found = after(10**9, {name: text})
    assert action(found) is PruneAction.INVALID
    assert reason(found).startswith(f"{name}: ")


@pytest.mark.parametrize("name", TTLS)
def test_forever_protects(name: str) -> None:
    assert after(10**9, {name: "forever"}) == (PruneAction.PROTECTED, "ttl forever")


def test_forever_of_our_own_protects_against_an_absolute_time_too() -> None:
    found = after(10**9, {TTL: "forever", EXPIRES_AT: "2026-03-01T13:00:00Z"})
    assert found == (PruneAction.PROTECTED, "ttl forever")


def test_hold_protects_what_has_expired() -> None:
    assert after(100, {TTL: "1", HOLD: "true"}) == (
        PruneAction.PROTECTED,
        "jobs.engine/hold is true",
    )
    assert action(after(100, {TTL: "1", HOLD: "false"})) is PruneAction.DELETED


@pytest.mark.parametrize("text", ["yes", "True", "", "1"])
def test_a_hold_that_cannot_be_read_never_deletes(text: str) -> None:
    assert action(after(100, {TTL: "1", HOLD: text})) is PruneAction.INVALID


def test_our_own_annotation_wins_over_those_of_other_cleaners() -> None:
    assert action(after(100, {TTL: "7d", "janitor/ttl": "1"})) is PruneAction.KEPT
    assert action(after(100, {TTL: "1", "janitor/ttl": "forever"})) is PruneAction.DELETED


def test_of_several_other_cleaners_the_longest_ttl_counts() -> None:
    both = {"janitor/ttl": "1", "pod-cleanup.gitlab.com/ttl": "1h"}
    assert action(after(100, both)) is PruneAction.KEPT
    assert action(after(10**6, {**both, "janitor/ttl": "forever"})) is PruneAction.PROTECTED


def test_one_annotation_that_cannot_be_read_counts_against_all_others() -> None:
    found = after(10**6, {TTL: "1", "janitor/ttl": "whenever"})
    assert action(found) is PruneAction.INVALID
    assert "janitor/ttl: 'whenever' is not a duration" in reason(found)


def test_what_carries_no_ttl_is_not_judged() -> None:
    assert after(10**9, {}) is None
    assert after(10**9, {HOLD: "true", "other/ttl": "1"}) is None
    assert evaluate({"name": "x"}, CREATED) is None


def test_an_annotation_of_ones_own_can_be_named() -> None:
    found = evaluate(metadata({"my/ttl": "1"}), CREATED + timedelta(seconds=5), ("my/ttl",))
    assert action(found) is PruneAction.DELETED
    assert evaluate(metadata({"janitor/ttl": "1"}), CREATED, ("my/ttl",)) is None


def test_only_one_cleaners_ttl_counts_unless_others_are_named() -> None:
    now = CREATED + timedelta(seconds=100)
    gitlab = metadata({"cleaner.kubernetes.gitlab.org/ttl": "1"})
    assert action(evaluate(gitlab, now)) is PruneAction.DELETED
    for name in OPT_IN_TTLS:
        assert evaluate(metadata({name: "1"}), now) is None
        assert action(evaluate(metadata({name: "1"}), now, (name,))) is PruneAction.DELETED


def test_known_ttls_that_nobody_named_are_found() -> None:
    marked = metadata({"janitor/ttl": "1", "other/ttl": "1"})
    assert unnamed_ttls(marked, FOREIGN_TTLS) == {"janitor/ttl"}
    assert unnamed_ttls(marked, (*FOREIGN_TTLS, "janitor/ttl")) == frozenset()
    assert unnamed_ttls({"name": "x"}, ()) == frozenset()


@pytest.mark.parametrize("label", ["jobs.engine/job", "jobs.engine/component"])
@pytest.mark.parametrize("text", ["1", "forever", "soon"])
def test_a_foreign_ttl_changes_nothing_on_what_the_engine_made(label: str, text: str) -> None:
    labels, foreign = {label: "x"}, dict.fromkeys(FOREIGN, text)
    assert after(100, foreign, labels=labels) is None
    assert unnamed_ttls(metadata(foreign, labels=labels), ()) == frozenset()
    own = {"jobs.engine/ttl": "60"}
    for age in (10, 100):
        assert after(age, {**foreign, **own}, labels=labels) == after(age, own, labels=labels)


def test_what_has_an_owner_goes_with_it() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    found = after(10**9, {TTL: "1"}, ownerReferences=[owner])
    assert found == (PruneAction.KEPT, "goes with its owner pod/p")


def test_what_is_being_deleted_is_left_alone() -> None:
    found = after(100, {TTL: "1"}, deletionTimestamp="2026-03-01T12:01:00Z")
    assert found == (PruneAction.KEPT, "is being deleted already")


def test_a_finalizer_that_holds_on_after_the_end_is_told() -> None:
    more = {"deletionTimestamp": "2026-03-01T12:01:00Z", "finalizers": ["a/b"]}
    assert after(30, {TTL: "1"}, **more) == (
        PruneAction.KEPT,
        "is being deleted, waits for finalizer a/b",
    )
    late = after(61, {TTL: "1"}, **more)
    assert late == (PruneAction.FAILED, "is being deleted, waits for finalizer a/b")


@pytest.mark.parametrize(("seconds", "late"), [(30, False), (61, False), (62, False), (63, True)])
def test_a_finalizer_has_more_than_a_second_after_the_grace_period(
    seconds: int, late: bool
) -> None:
    now = CREATED + timedelta(seconds=seconds)
    deleted = {"deletionTimestamp": "2026-03-01T12:01:00Z"}
    assert is_stuck({**deleted, "finalizers": ["a/b"]}, now) is late
    assert not is_stuck({"finalizers": ["a/b"]}, now)
    assert not is_stuck({**deleted, "finalizers": ["foregroundDeletion"]}, now)


@pytest.mark.parametrize("name", [*TTLS, EXPIRES_AT, HOLD])
def test_a_message_quotes_no_more_than_the_beginning_of_a_value(name: str) -> None:
    found = after(10**9, {TTL: "1", name: "9" * 200_000})
    assert action(found) is PruneAction.INVALID
    assert len(reason(found)) < 200
    assert reason(found).startswith(f"{name}: ")


@pytest.mark.parametrize("created", [None, "", "yesterday"])
def test_without_a_creation_time_nothing_is_deleted(created: str | None) -> None:
    found = after(10**9, {TTL: "1"}, creationTimestamp=created)
    assert action(found) is PruneAction.INVALID


@given(name=st.sampled_from(TTLS), text=any_text, age=st.integers(0, 10**10))
def test_an_unreadable_ttl_never_deletes(name: str, text: str, age: int) -> None:
    found = after(age, {TTL: "1", name: text})
    if not is_readable(text):
        assert action(found) is PruneAction.INVALID


@given(text=any_text, age=st.integers(0, 10**10))
def test_an_unreadable_time_never_deletes(text: str, age: int) -> None:
    found = after(age, {TTL: "1", EXPIRES_AT: text})
    assert action(found) is not PruneAction.DELETED or text[:4].isdigit()


VALUES = st.one_of(
    st.integers(0, 10**6).map(str),
    st.sampled_from(["forever", "1h", "3h15m", "7d", "soon", "2026-03-01T13:00:00Z"]),
)
ANNOTATIONS = st.dictionaries(st.sampled_from([*TTLS, EXPIRES_AT, HOLD]), VALUES, max_size=4)


@given(ANNOTATIONS, st.integers(-1000, 2 * 10**6), st.integers(0, 2 * 10**6))
def test_what_has_expired_stays_expired(annotations: dict[str, str], age: int, later: int) -> None:
    if action(after(age, annotations)) is PruneAction.DELETED:
        assert action(after(age + later, annotations)) is PruneAction.DELETED


@given(ANNOTATIONS, st.integers(0, 10**6))
def test_a_longer_ttl_never_expires_sooner(annotations: dict[str, str], age: int) -> None:
    short = after(age, {**annotations, TTL: "100"})
    long = after(age, {**annotations, TTL: "200"})
    assert action(long) is not PruneAction.DELETED or action(short) is PruneAction.DELETED


@given(ANNOTATIONS, st.integers(0, 10**7))
def test_what_is_held_or_owned_is_never_deleted(annotations: dict[str, str], age: int) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    assert action(after(age, {**annotations, HOLD: "true"})) is not PruneAction.DELETED
    assert action(after(age, annotations, ownerReferences=[owner])) is not PruneAction.DELETED


DAYS = 86_400.0


def of_record(days: float, **annotations: str) -> Verdict | None:
    """The verdict on a record so many days after its spec was missed, if it was."""
    names = {"gone": ORPHANED_SINCE, "hold": HOLD, "ttl": TTL}
    marks = {names[key]: value for key, value in annotations.items()}
    now = CREATED + timedelta(days=days)
    return evaluate_record({"annotations": marks}, now, 30 * DAYS)


def test_a_record_ages_from_when_its_spec_was_missed_and_never_without_that() -> None:
    gone = "2026-03-01T12:00:00Z"
    words = f"its spec is gone since {gone}, records.ttl 30d"
    assert of_record(31, gone=gone) == (PruneAction.DELETED, words)
    kept = of_record(29, gone=gone)
    assert action(kept) is PruneAction.KEPT
    assert reason(kept) == f"{words}, expires in 1d"
    assert of_record(9999) is None
    assert of_record(9999, ttl="1", hold="false") is None


def test_a_record_is_kept_by_a_hold_by_forever_and_by_a_mark_that_nobody_can_read() -> None:
    gone = "2026-03-01T12:00:00Z"
    assert action(of_record(9999, gone=gone, hold="true")) is PruneAction.PROTECTED
    assert action(of_record(9999, gone=gone, hold="maybe")) is PruneAction.INVALID
    assert evaluate_record({"annotations": {ORPHANED_SINCE: gone}}, CREATED, None) == (
        PruneAction.PROTECTED,
        "records.ttl is forever",
    )
    assert of_record(9999, gone="soon") == (
        PruneAction.INVALID,
        f"{ORPHANED_SINCE}: 'soon' is not an RFC 3339 time",
    )


def test_at_the_very_end_of_its_time_a_record_is_still_kept_and_one_that_goes_is_told_once() -> (
    None
):
    gone = "2026-03-01T12:00:00Z"
    assert action(of_record(30, gone=gone)) is PruneAction.KEPT
    assert action(of_record(30.00001, gone=gone)) is PruneAction.DELETED
    marks = {"annotations": {ORPHANED_SINCE: gone}, "deletionTimestamp": "2026-04-30T12:00:00Z"}
    going = evaluate_record(marks, CREATED + timedelta(days=90), 30 * DAYS)
    assert going == (PruneAction.KEPT, "is being deleted already")
