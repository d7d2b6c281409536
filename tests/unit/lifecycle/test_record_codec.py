"""What is written of a record, and what is read: nothing that the engine can't have written."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from engine.api.model import JobObject, PullClass
from engine.errors import BrokenRecordError, ExitCode
from engine.files import resource_dir
from engine.lifecycle.record import Attempt, PullFailure, Record, RunHistoryEntry
from engine.lifecycle.record_codec import (
    _OF_THE_HOLDER,
    MAX_SIZE,
    check_record,
    decode_record,
    encode_record,
)
from engine.refs import JobKey
from engine.status.outcome import LastWords, Masked, Reason, State
from tests.unit.lifecycle.states import JOB, NOW, attempt, finished, record
from tests.unit.lifecycle.strategies import JOBS, records

PULL = {
    "container": "main",
    "reason": "ErrImagePull",
    "class": "other",
    "message": "m",
    "image": "main:1",
}
MISSING = object()


def written(record: Record) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(encode_record(record))
    return data


def read(data: Any, key: JobKey = JOB.key) -> Record:
    return decode_record(key, json.dumps(data), "7")


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """`data` with `value` at a place such as `attempts.0.pod`; MISSING takes out what is there."""
    whole: dict[str, Any] = json.loads(json.dumps(data))
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = whole
    for step in way:
        place = place[step]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return whole


def full() -> dict[str, Any]:
    """A record with something in every field."""
    closed = attempt(outcome=Reason.IMAGE_PULL_FAILED, message="x", exit_code=1)
    data = written(record(closed, attempt(2, policies={"main": "Never"}), exit_code=3))
    data["attempts"][0]["failures"] = [dict(PULL)]
    data["history"] = [{"run": "0a1b2c3d", "state": "Failed", "reason": "Evicted", "lastNumber": 1}]
    data |= {"reason": "QuotaExceeded", "message": "m"}
    data["specFields"] = "spec.image=0a1b2c3d spec.script=9f8e7d6c"
    data["defaultedFields"] = "spec.env=0a1b2c3d"
    return {**data, "base": 1, "startedAt": data["queuedAt"], "finishedAt": data["queuedAt"]}


@given(st.sampled_from(JOBS).flatmap(records))
def test_a_record_survives_being_written_and_read(known: Record) -> None:
    assert decode_record(known.key, encode_record(known), known.version) == known


def test_every_field_is_written_but_those_of_the_object_that_holds_the_record() -> None:
    """A field that was added and has no key would be forgotten at the next start."""
    failure = PullFailure("main", "ErrImagePull", PullClass.OTHER, "m", "main:1")
    words = LastWords("main", "no such host")
    of_run: dict[str, Any] = {
        "state": State.FAILED, "reason": Reason.EVICTED, "message": "m", "exit_code": 1,
        "queued_at": NOW, "started_at": NOW, "finished_at": NOW,
        "cause": "first run", "defaulted_fields": "spec.env=0a1b2c3d",
    }  # fmt: skip
    tried = attempt(
        uid="uid-1", policies={"main": "Never"}, started_at=NOW, finished_at=NOW, message="m",
        outcome=Reason.EVICTED, exit_code=1, failures=(failure,),
        gives_up_at=NOW, retry_at=NOW, exhausted=True, last_words=(words,),
    )  # fmt: skip
    past = RunHistoryEntry("0a1b2c3d", 1, "uid-0", **of_run)
    whole = Record(
        JOB.key, "default", JOB.spec_hash, (past,), 1, {"0a1b2c3d": 1}, "spec.image=0a1b2c3d",
        "uid-2", "node_12", 7, 60, completed=True, refused="QuotaExceeded q", attempts=(tried,),
        annotations={"a": "b"}, object=JobObject("uid-3", 1), since={("Ready", "True"): "now"},
        version="7", **of_run,
    )  # fmt: skip
    for entry in (whole, tried, past, failure, words):
        empty = [f.name for f in fields(entry) if not getattr(entry, f.name)]
        assert empty in ([], ["attempts"])
    of_the_holder = ("annotations", "object", "since")
    kept = {name: getattr(whole, name) for name in of_the_holder}
    assert replace(read(written(whole)), **kept) == whole


def test_the_schema_bounds_every_field() -> None:
    schema = json.loads((resource_dir("schemas") / "record.schema.json").read_bytes())
    entries: dict[Any, Any] = {
        Record: schema,
        RunHistoryEntry: schema["$defs"]["pastRun"],
        Attempt: schema["$defs"]["attempt"],
        PullFailure: schema["$defs"]["pullFailure"],
        LastWords: schema["$defs"]["lastWords"],
    }
    for kind, bounds in entries.items():
        written = {field.encode_name for field in fields(kind)} - _OF_THE_HOLDER
        assert written == bounds["properties"].keys()


def test_what_is_empty_is_not_written() -> None:
    fresh = Record(JobKey("ci", "build"), "default", "a" * 64)
    assert written(fresh) == {"source": "default", "specHash": "a" * 64, "state": "Queued"}


def test_an_exit_code_of_zero_is_written() -> None:
    assert written(finished())["exitCode"] == 0


@pytest.mark.parametrize("code", [-(2**31), 2**31 - 1])
def test_an_exit_code_of_any_32_bits_is_read_back(code: int) -> None:
    """As PodStatus has it: int32; Windows' codes are the negative ones."""
    known = record(attempt(outcome=Reason.SCRIPT_FAILED, exit_code=code))
    assert decode_record(known.key, encode_record(known), known.version) == known


def test_times_are_utc_with_milliseconds() -> None:
    data = written(record(attempt()))
    assert data["attempts"][0]["claimedAt"] == "2026-01-01T12:00:00.000Z"


def test_a_time_in_another_zone_is_the_same_time() -> None:
    data = changed(full(), "queuedAt", "2026-01-01T14:00:20.000+02:00")
    assert read(data).queued_at == datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC)
    assert written(read(data))["queuedAt"] == "2026-01-01T12:00:20.000Z"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "not JSON",
        "[]",
        "null",
        "5",
        "{}",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"state": NaN}',
        '{"base": ' + "1" * 5000 + "}",
        "x" * (MAX_SIZE + 1),
    ],
    ids=lambda text: str(text)[:12],
)
def test_a_text_that_is_no_record_is_refused(text: object) -> None:
    with pytest.raises(BrokenRecordError):
        decode_record(JOB.key, text, "7")


def test_the_record_that_the_next_tests_break_is_sound() -> None:
    assert len(read(full()).attempts) == 2


@pytest.mark.parametrize("value", [MISSING, None, 5, [], {}, "", "x", True, 1.5, "Succeeded"])
@pytest.mark.parametrize(
    "path",
    [
        "specHash",
        "specFields",
        "state",
        "source",
        "reason",
        "message",
        "exitCode",
        "base",
        "queuedAt",
        "attempts",
        "attempts.0",
        "attempts.0.number",
        "attempts.0.pod",
        "attempts.0.uid",
        "attempts.0.outcome",
        "attempts.0.claimedAt",
        "attempts.0.failures",
        "attempts.0.failures.0.class",
        "attempts.0.failures.0.image",
        "attempts.1.pullPolicies",
        "history",
        "history.0.run",
        "history.0.state",
        "history.0.lastNumber",
    ],
)
def test_every_field_is_as_the_engine_writes_it_or_the_record_is_refused(
    path: str, value: Any
) -> None:
    """Never an error of another kind, and what is read can be written and computed with."""
    try:
        found = read(changed(full(), path, value))
    except BrokenRecordError:
        return
    assert read(written(found)) == found


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("state", "Odd", "state can't be 'Odd'"),
        ("state", MISSING, "state is missing"),
        ("reason", "Odd", "reason can't be 'Odd'"),
        ("message", 5, "message can't be 5"),
        ("message", "\ud800", r"message can't be '\ud800'"),
        ("source", "a b", "source can't be 'a b'"),
        ("specHash", "abc", "specHash can't be 'abc'"),
        ("specHash", "G" * 64, "specHash can't be"),
        ("exitCode", True, "exitCode can't be True"),
        ("exitCode", 2**40, "exitCode can't be"),
        ("base", -1, "base can't be -1"),
        ("base", 1.5, "base can't be 1.5"),
        ("queuedAt", "2020-01-01T00:00:01", "queuedAt can't be '2020-01-01T00:00:01'"),
        ("queuedAt", "yesterday", "queuedAt can't be 'yesterday'"),
        ("queuedAt", "9999-12-31T23:59:59Z", "queuedAt can't be"),
        ("queuedAt", "0001-01-01T00:00:00+23:59", "queuedAt can't be"),
        ("queuedAt", 1767225600, "queuedAt can't be 1767225600"),
        ("attempts", {}, "attempts can't be {}"),
        ("attempts.0", "x", "attempts[0] can't be 'x'"),
        ("attempts.0.number", 0, "attempts[0].number can't be 0"),
        ("attempts.0.number", True, "attempts[0].number can't be True"),
        ("attempts.0.number", MISSING, "attempts[0].number is missing"),
        ("attempts.0.pod", "../../ci/secrets/victim", "attempts[0].pod can't be"),
        ("attempts.0.pod", "", "attempts[0].pod can't be ''"),
        ("attempts.0.pod", f"other-{JOB.run}-1", "attempts[0].pod can't be"),
        ("attempts.0.pod", f"build-{JOB.run}-2", "attempts[0].pod can't be"),
        ("attempts.0.pod", "build-ffffffff-1", "attempts[0].pod can't be"),
        ("attempts.0.uid", "a/../b", "attempts[0].uid can't be 'a/../b'"),
        ("attempts.0.uid", ["a"], "attempts[0].uid can't be ['a']"),
        ("attempts.0.uid", "u" * 65, "attempts[0].uid can't be"),
        ("attempts.0.outcome", "Odd", "attempts[0].outcome can't be 'Odd'"),
        ("attempts.0.outcome", MISSING, "an attempt follows one that is under way"),
        ("attempts.0.claimedAt", [["x" * 99] * 9] * 9, "attempts[0].claimedAt can't be [['xxx"),
        ("attempts.0.claimedAt", "12:00", "attempts[0].claimedAt can't be '12:00'"),
        ("attempts.0.failures.0.class", "odd", "attempts[0].failures[0].class can't be 'odd'"),
        ("attempts.0.failures.0.container", "A B", "failures[0].container can't be 'A B'"),
        ("attempts.0.failures.0.image", 1, "failures[0].image can't be 1"),
        ("attempts.1.uid", MISSING, "attempts[1].uid is missing"),
        ("attempts.1.pullPolicies", ["main"], "attempts[1].pullPolicies can't be ['main']"),
        ("attempts.1.pullPolicies", {"main": 5}, "attempts[1].pullPolicies.main can't be 5"),
        ("attempts.1.pullPolicies", {"a\nb": "Never"}, "attempts[1].pullPolicies can't be"),
        ("attempts.1.number", 1, "attempts[1].pod can't be"),
        ("history.0.run", "../..", "history[0].run can't be '../..'"),
        ("history.0.state", MISSING, "history[0].state is missing"),
        ("history.0.lastNumber", "1", "history[0].lastNumber can't be '1'"),
        ("history.0.finishedAt", "2020-01-01", "history[0].finishedAt can't be '2020-01-01'"),
    ],
)
def test_what_the_engine_cant_have_written_is_refused_at_its_place(
    path: str, value: Any, words: str
) -> None:
    with pytest.raises(BrokenRecordError) as raised:
        read(changed(full(), path, value))
    assert words in raised.value.cause
    assert len(raised.value.cause) < 200


def test_attempts_that_count_down_or_twice_are_refused() -> None:
    for numbers in ((2, 1), (1, 1)):
        closed = [attempt(n, outcome=Reason.EVICTED) for n in numbers]
        with pytest.raises(BrokenRecordError, match="don't count upwards"):
            read(written(record(*closed)))


@pytest.mark.parametrize("reason", [Reason.SUCCEEDED, Reason.SCRIPT_FAILED])
def test_nothing_has_succeeded_or_failed_by_itself_without_an_attempt(reason: Reason) -> None:
    ended = finished(reason)
    assert read(written(ended)).reason is reason
    for others in ((), (attempt(outcome=Reason.EVICTED),), (attempt(),)):
        with pytest.raises(BrokenRecordError, match=f"it says {reason}, and no attempt has ended"):
            read(written(replace(ended, attempts=others)))


@pytest.mark.parametrize("reason", [Reason.CANCELLED, Reason.ADMISSION_REFUSED])
def test_a_job_that_was_cancelled_in_the_queue_or_refused_has_no_attempts(reason: Reason) -> None:
    ended = replace(finished(reason), attempts=())
    assert read(written(ended)) == ended


@pytest.mark.parametrize(
    ("state", "reason"),
    [("Succeeded", "ScriptFailed"), ("Failed", "Cancelled"), ("Cancelled", MISSING)],
)
def test_a_state_that_its_reason_doesnt_lead_to_is_refused(state: str, reason: Any) -> None:
    data = changed(written(finished(Reason.EVICTED)), "state", state)
    with pytest.raises(BrokenRecordError, match="can't have reason"):
        read(changed(data, "reason", reason))


def test_too_many_attempts_are_refused() -> None:
    data = written(record(attempt(outcome=Reason.EVICTED)))
    (first,) = data["attempts"]
    many = [{**first, "number": n, "pod": f"build-{JOB.run}-{n}"} for n in range(1, 1002)]
    with pytest.raises(BrokenRecordError, match="attempts can't be"):
        read({**data, "attempts": many})
    assert len(read({**data, "attempts": many[:1000]}).attempts) == 1000


def test_the_error_names_the_record_and_its_hint_what_leads_to_a_second_run() -> None:
    with pytest.raises(BrokenRecordError) as raised:
        read({}, JobKey("ci", "deploy"))
    error = raised.value
    assert error.where == "configmap/ci/deploy.record"
    assert "kubectl edit -n ci configmap deploy.record" in error.hint
    assert error.hint.endswith(
        "; if that is lost, kubectl delete -n ci configmap deploy.record has the job run again"
    )
    assert (error.exit_code, error.retryable) == (ExitCode.CLUSTER, False)


@pytest.mark.parametrize("outcome", [None, Reason.EVICTED])
def test_a_record_that_leaves_no_number_for_an_attempt_cant_be_read(outcome: Reason | None) -> None:
    data = written(record(attempt(outcome=outcome)))
    last = 2**31 - 1

    def of_attempt(number: int) -> dict[str, Any]:
        (first,) = data["attempts"]
        numbered = {**first, "number": number, "pod": f"build-{JOB.run}-{number}"}
        return {**data, "attempts": [numbered]}

    for broken in (of_attempt(last), {**data, "attempts": [], "base": last}):
        with pytest.raises(BrokenRecordError, match="no attempt can follow number 2147483647"):
            read(broken)
    assert read(of_attempt(last - 2)).next_number == last - (2 if outcome is None else 1)


def test_nor_can_one_whose_next_attempt_would_be_the_last_number() -> None:
    data = {**written(record()), "attempts": [], "base": 2**31 - 2}
    with pytest.raises(BrokenRecordError, match="no attempt can follow number 2147483647"):
        read(data)


def test_keys_that_a_later_version_wrote_say_nothing_to_this_one() -> None:
    data = {**full(), "newer": {"0a1b2c3d": [7]}}
    data["attempts"][0] |= {"node": "n1"}
    data["attempts"][0]["failures"][0] |= {"layer": "sha256:0a"}
    assert written(read(data)) == full()


def test_a_record_stays_below_its_size_whatever_containers_say() -> None:
    long = "größer, " * 10_000
    failures = (PullFailure("main", "ErrImagePull", PullClass.OTHER, long, "main:1"),)
    attempts = tuple(
        attempt(n, outcome=Reason.EVICTED, message=long, failures=failures) for n in range(1, 101)
    )
    past = RunHistoryEntry(
        "0a1b2c3d",
        3,
        state=State.FAILED,
        reason=Reason.EVICTED,
        message=long,
        finished_at=NOW,
    )
    whole = record(*attempts, message=long, history=(past,) * 5)
    text = encode_record(whole)
    assert len(text.encode()) <= MAX_SIZE
    found = decode_record(whole.key, text, "7")
    assert len(found.attempts) == 100
    assert found.attempts[0].message.startswith("größer")
    assert found.attempts[0].message.endswith("…")
    assert encode_record(found) == text


def test_a_message_that_is_no_text_is_written_as_one() -> None:
    (found,) = read(written(record(attempt(message="\udcff\ud800!")))).attempts
    assert found.message == "??!"


def test_a_time_east_of_here_is_written_as_the_same_moment() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=2)))
    assert read(written(record(attempt(), finished_at=east))).finished_at == NOW


def test_a_record_that_could_not_be_read_again_is_not_written() -> None:
    known = read({**written(finished()), "numbers": {JOB.run: 2**31 - 1}})
    with pytest.raises(BrokenRecordError, match="no attempt can follow number 2147483647"):
        check_record(known.again())


def test_messages_of_a_record_are_masked_already() -> None:
    found = read(written(record(attempt(message="said ***"), message="is ***")))
    assert isinstance(found.message, Masked)
    assert isinstance(found.attempts[0].message, Masked)


@pytest.mark.parametrize(
    "place", ["x", "attempts.0.x", "message", "engine", "attempts.0.pullPolicies.m"]
)
def test_half_a_surrogate_pair_under_any_key_leaves_no_record_that_cant_be_written(
    place: str,
) -> None:
    data = written(finished(engine="e", message="m"))
    data["attempts"][0]["pullPolicies"] = {}
    try:
        found = read(changed(data, place, "\ud800"))
    except BrokenRecordError:
        return
    assert place.endswith("x"), "what the engine writes itself is checked"
    encode_record(found).encode()
