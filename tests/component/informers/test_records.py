"""Run records: of what was watched and what was written here, the newer one counts."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from engine.cluster.client import Client
from engine.cluster.records import CONFIG_MAP_RECORDS, write_record
from engine.errors import BrokenRecordError
from engine.informers.records import RecordInformer
from engine.informers.reflector import WatchContext
from engine.lifecycle.record import MaskedRecord, Record
from engine.refs import JobKey, record_name
from engine.runtime.supervisor import Supervisor
from engine.sandbox import Sandbox
from engine.status.outcome import State
from tests.component.informers.conftest import Handler, miss
from tests.support.sandbox_namespace import Namespace

KEY = JobKey("ci", "job")


@pytest.fixture
def informer(client: Client, handler: Handler) -> Iterator[RecordInformer]:
    supervisor = Supervisor(handler.emit)
    context = WatchContext(client, supervisor, handler.on_change, handler.on_error)
    records = RecordInformer(context, CONFIG_MAP_RECORDS, "ci")
    yield records
    records.reflector.stop()
    records.reflector.join(5)


@pytest.fixture
def first(client: Client, ci: Namespace) -> Record:
    """A record that stands in the cluster."""
    del ci
    record = Record(KEY, "team", spec_hash="a" * 64, state=State.STARTING)
    return write_record(client, MaskedRecord(record))


def delete(ci: Namespace) -> None:
    assert ci.client.delete(ci.path("configmaps", record_name("job"))).code == 200


def test_the_newer_of_what_was_written_and_what_was_heard_counts(
    informer: RecordInformer, first: Record, client: Client, handler: Handler
) -> None:
    informer.list()
    ahead = write_record(client, MaskedRecord(replace(first, state=State.RUNNING)))
    assert informer.newest(KEY, None) == first
    assert informer.newest(KEY, ahead) is ahead
    informer.start()
    handler.wait(lambda: handler.jobs["job"] == 2)
    assert informer.newest(KEY, first) == ahead
    assert informer.all_records() == [ahead]


def test_what_is_listed_again_unchanged_is_told_once(
    informer: RecordInformer, first: Record, handler: Handler
) -> None:
    informer.list()
    informer.list()
    assert informer.newest(KEY, None) == first
    assert handler.jobs == {"job": 1}


@pytest.mark.parametrize("seen", [True, False])
def test_a_deleted_record_is_gone_unless_a_newer_one_was_written(
    informer: RecordInformer,
    first: Record,
    client: Client,
    handler: Handler,
    ci: Namespace,
    sandbox: Sandbox,
    seen: bool,
) -> None:
    informer.start()
    handler.wait(lambda: handler.jobs["job"] == 1)
    if seen:
        delete(ci)
    else:
        miss(sandbox, "configmaps", lambda: delete(ci))
    handler.wait(lambda: handler.jobs["job"] == 2)
    assert informer.newest(KEY, first) is None
    again = write_record(client, MaskedRecord(replace(first, version="")))
    assert informer.newest(KEY, again) is again
    handler.wait(lambda: handler.jobs["job"] == 3)
    assert informer.newest(KEY, None) == again


def test_a_record_that_cant_be_read_is_its_jobs_trouble_alone(
    informer: RecordInformer,
    first: Record,
    handler: Handler,
    client: Client,
    ci: Namespace,
) -> None:
    other = write_record(
        client, MaskedRecord(replace(first, key=JobKey("ci", "other"), version=""))
    )
    informer.start()
    handler.wait(lambda: len(handler.jobs) == 2)
    path = ci.path("configmaps", record_name("job"))
    ci.client.patch(path, {"data": {"record.json": "not JSON"}})
    handler.wait(lambda: handler.jobs["job"] == 2)
    with pytest.raises(BrokenRecordError, match="can't be read"):
        informer.newest(KEY, first)
    assert informer.newest(other.key, None) == other
    ci.client.patch(path, {"data": {"record.json": "{}"}})
    delete(ci)
    handler.wait(lambda: handler.jobs["job"] == 4)
    assert informer.newest(KEY, None) is None
