"""The two stores of run records: one contract."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.api.model import JobObject
from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.cluster.records import (
    CONFIG_MAP_RECORDS,
    STATUS_RECORDS,
    RecordStore,
    list_records,
    read_record,
    write_record,
)
from engine.errors import AlreadyExistsError, BrokenRecordError, ConflictError, NotFoundError
from engine.lifecycle.record import Attempt, MaskedRecord, Record
from engine.lifecycle.record_codec import encode_record
from engine.refs import JobKey, pod_name
from engine.sandbox import Sandbox
from engine.status.outcome import Masked, Outcome, Reason, State
from tests.support.api import Api

KEY = JobKey("ci", "build")
HASH = "a" * 64
NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB_SPECS = "jobs.engine/v1alpha1/jobspecs"
ATTEMPT = Attempt(1, pod_name("build", HASH[:8], 1), "uid-1", {"main": "Always"}, NOW)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with Sandbox() as sandbox:
        sandbox.namespace("ci")
        yield Api.from_kubeconfig(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))


@pytest.fixture
def client(api: Api, tmp_path: Path) -> Client:
    del api
    return connect(str(tmp_path / "kubeconfig"), "", 4, lambda _words: None).client


@pytest.fixture(params=[CONFIG_MAP_RECORDS, STATUS_RECORDS], ids=["ConfigMap", "status"])
def store(request: pytest.FixtureRequest) -> RecordStore:
    found: RecordStore = request.param
    return found


@pytest.fixture
def new(store: RecordStore, api: Api) -> Callable[[], MaskedRecord]:
    """A record that the store doesn't have yet, of a job that may have one."""
    blank = Record(KEY, "team", HASH, state=State.STARTING, attempts=(ATTEMPT,), queued_at=NOW)
    if store is CONFIG_MAP_RECORDS:
        return lambda: MaskedRecord(blank)
    body = {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": "build"},
        "spec": {"image": "busybox:1"},
    }
    made = api.create(JOB_SPECS, body, "ci")["metadata"]
    version = made["resourceVersion"]
    of_object = replace(blank, object=JobObject(made["uid"], 1), version=version)
    return lambda: MaskedRecord(of_object)


def test_what_is_written_is_read_again(
    store: RecordStore, new: Callable[[], MaskedRecord], client: Client
) -> None:
    assert store.read(client, KEY) is None
    written = store.write(client, new())
    assert encode_record(written) == encode_record(new().record)
    assert store.read(client, KEY) == written == read_record(client, KEY)
    assert store.list(client, "ci").items == {KEY: written} == list_records(client, "").items
    assert [*store.closed_pods(client, "ci")] == []
    done = written.with_attempt_closed(ATTEMPT, Outcome(Reason.SUCCEEDED, Masked("done"), 0), NOW)
    assert write_record(client, MaskedRecord(done)).state is State.SUCCEEDED
    assert [*store.closed_pods(client, "ci")] == ["uid-1"]


def test_of_two_writers_the_second_is_refused(
    store: RecordStore, new: Callable[[], MaskedRecord], client: Client
) -> None:
    first = store.write(client, new())
    with pytest.raises((ConflictError, AlreadyExistsError)):
        store.write(client, new())
    store.write(client, MaskedRecord(replace(first, state=State.RUNNING)))
    with pytest.raises(ConflictError):
        store.write(client, MaskedRecord(replace(first, state=State.QUEUED)))


def test_a_record_in_another_format_is_an_error_that_names_it(
    store: RecordStore, new: Callable[[], MaskedRecord], client: Client, api: Api
) -> None:
    store.write(client, new())
    if store is CONFIG_MAP_RECORDS:
        api.patch("configmaps", "build.record", {"data": {"record.json": "{}"}}, "ci")
    else:
        item = api.get(JOB_SPECS, "build", "ci")
        item["status"]["record"] = {"state": 5}
        path = "/apis/jobs.engine/v1alpha1/namespaces/ci/jobspecs/build/status"
        assert api.client.put(path, item).code == 200
    with pytest.raises(BrokenRecordError, match="can't be read") as told:
        store.read(client, KEY)
    assert "ci/build" in str(told.value)
    assert store.list(client, "ci").invalid.keys() == {KEY}


def test_a_status_is_not_written_to_another_object_of_the_name(client: Client, api: Api) -> None:
    body = {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": "build"},
        "spec": {"image": "busybox:1"},
    }
    first = api.create(JOB_SPECS, body, "ci")["metadata"]
    record = MaskedRecord(Record(KEY, "team", HASH, object=JobObject(first["uid"], 1)))
    api.delete(JOB_SPECS, "build", "ci")
    with pytest.raises(NotFoundError):
        STATUS_RECORDS.write(client, record)
    api.create(JOB_SPECS, body, "ci")
    with pytest.raises(ConflictError):
        STATUS_RECORDS.write(client, record)


def test_a_record_is_read_where_the_cluster_has_no_objects(client: Client, api: Api) -> None:
    for plural in ("jobspecs", "jobdefaults"):
        definitions = "apiextensions.k8s.io/v1/customresourcedefinitions"
        api.delete(definitions, f"{plural}.jobs.engine")
    written = CONFIG_MAP_RECORDS.write(client, MaskedRecord(Record(KEY, "team", HASH)))
    assert list_records(client, "ci").items == {KEY: written}
    assert read_record(client, JobKey("ci", "other")) is None
