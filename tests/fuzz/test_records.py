"""Run records and Leases: real ones, mutated in their structure and as texts, by a stranger."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from engine.cli.output import to_json
from engine.cli.printers.status import overview_data, overview_rows
from engine.errors import BrokenRecordError
from engine.inspect.view import JobView, LeaseHolders, Overview, queue_positions
from engine.lifecycle.observed_status import observed_status
from engine.lifecycle.record import Record
from engine.lifecycle.record_codec import MAX_SIZE, decode_record, encode_record
from engine.lifecycle.rules import decide
from engine.refs import JobKey, pod_name
from engine.runtime.lease import (
    is_stale,
    observe,
    read_lease_record,
    with_holder,
)
from engine.status.outcome import Reason
from tests.fuzz import play
from tests.fuzz.structure import at, edited, paths
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import PULL_FAILURE, attempt, finished, make_state, record
from tests.unit.strategies import NASTY, json_values

_RECORDS = tuple(
    (known.key, json.loads(encode_record(known)))
    for known in (
        record(),
        record(attempt(policies={"main": "Always"})),
        finished(spec_fields="spec.image=0a1b2c3d spec.script=9f8e7d6c"),
        finished(Reason.EVICTED).next_run("b" * 64, "spec.image=0a1b2c3d"),
        record(attempt(outcome=Reason.IMAGE_PULL_FAILED, failures=(PULL_FAILURE,)), attempt(2)),
    )
)
_LEASE = {
    "holderIdentity": "two",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-03-02T09:00:00.000000Z",
    "renewTime": "2026-03-02T09:00:00.000000Z",
    "leaseTransitions": 3,
}
_NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
_HOSTILE = st.sampled_from(
    (
        *NASTY, "../../ci/secrets/victim", "..", "", "\ud800", "2020-01-01T00:00:01", "2020-01-01",
        "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+23:59", "Succeeded", "Queued", True,
        -1, 0, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf"), [], {}, [[]], {"": None},
    )
)  # fmt: skip
_PIECES = st.sampled_from(
    ("[" * 2000, '{"a":' * 2000, "NaN", "-Infinity", "9" * 5000, '"\\ud800"', "\x00", "}", ",")
)


@st.composite
def _changed(draw: st.DrawFn, value: Any) -> Any:
    """`value` after some changes: fields taken out, replaced, added, or by one another."""
    for _ in range(draw(st.integers(0, 4))):
        places = st.sampled_from(list(paths(value)))
        place = draw(places)
        there = at(value, place)
        new: Any
        if isinstance(there, dict) and draw(st.booleans()):
            new = {**there, draw(st.text(max_size=3)): draw(json_values)}
        elif isinstance(there, list) and there and draw(st.booleans()):
            new = there * draw(st.sampled_from((2, 1100)))
        else:
            new = draw(
                st.one_of(_HOSTILE, json_values, st.none(), st.just(at(value, draw(places))))
            )
        value = edited(value, place, new)
    return value


@st.composite
def _records(draw: st.DrawFn) -> tuple[JobKey, object]:
    """A job, and what stands in its ConfigMap."""
    key, data = draw(st.sampled_from(_RECORDS))
    text = json.dumps(draw(_changed(data)), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1)))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 20)))
        text = text[:begin] + draw(_PIECES) + text[end:]
    return key, draw(st.sampled_from((text, text, text, text, None)))


def _read_and_use(stored: tuple[JobKey, object]) -> None:
    key, text = stored
    try:
        record = decode_record(key, text, "7")
    except BrokenRecordError as error:
        broken = error
    else:
        _use(record)
        return
    assert len(str(broken).encode()) < 1000


def _use(record: Record) -> None:
    key = record.key
    _show(record)
    _assert_sound(record)
    job = make_job(key.name, namespace=key.namespace)
    for known in (job, replace(job, spec_hash=record.spec_hash)):
        decide(make_state(known, record, now=_NOW, source=record.source))
    for after in (record.cancelled("why", _NOW), record.again(), record.next_run("b" * 64)):
        _assert_sound(after)


def _show(record: Record) -> None:
    queue = queue_positions([record], _NOW).get(record.key)
    job = JobView(record.key, record, None, observed_status(record, None), queue=queue)
    assert len({len(row) for row in overview_rows([job], _NOW, wide=True)}) == 1
    to_json(overview_data(Overview((job,), _NOW, LeaseHolders(_NOW, ())), [job])).encode()


def _assert_sound(record: Record) -> None:
    """Written and read it is the same, and leads to no pod but the job's own."""
    text = encode_record(record)
    assert len(text.encode()) <= MAX_SIZE
    again = decode_record(record.key, text, record.version)
    assert encode_record(again) == text
    for made in record.attempts:
        assert made.pod == pod_name(record.key.name, record.run, made.number)


def _follow(leases: list[Any]) -> None:
    seen = None
    for moment, spec in enumerate(leases):
        lease = {"metadata": {"name": "engine-web"}, "spec": spec}
        seen = observe(seen, read_lease_record(lease), float(moment))
        left = seen.remaining("one", moment, 15.0)
        is_stale(read_lease_record(lease), _NOW, 15.0)
        assert 0 <= left <= 15.0
        mine = with_holder(lease, "one", "web", 15.0, _NOW)
        assert mine["spec"]["leaseDurationSeconds"] == 15
        assert not read_lease_record(with_holder(lease, "", "web", 1.0, _NOW)).holder


def test_no_record_makes_the_engine_stumble() -> None:
    play(_records(), _read_and_use)


def test_no_lease_makes_the_engine_stumble_or_wait_for_ever() -> None:
    play(st.lists(_changed(_LEASE), min_size=1, max_size=3), _follow)
