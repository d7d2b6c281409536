"""Run records, in the store that each is kept in: read them all, write one by compare-and-swap."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.api.model import JobObject
from engine.api.versions import API_VERSION, JOB_SPEC
from engine.cluster import api
from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.errors import BrokenRecordError, ForbiddenError, NotFoundError
from engine.lifecycle.object_status import INVALID, decode_status, encode_status
from engine.lifecycle.orphan import orphaned_on
from engine.lifecycle.ownership import OwnRecord
from engine.lifecycle.record import MaskedRecord, Record
from engine.lifecycle.record_codec import check_record, decode_record, encode_record
from engine.refs import JobKey, Ref, record_name
from engine.times import parse_time
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

SELECTOR = f"{COMPONENT}={RECORD}"
KEY = "record.json"
Refusal = tuple[int, str, str]
"""Generation, reason and message, where the status of an object says that it is invalid."""
_SUFFIX = record_name("")


class RecordList(Struct, frozen=True):
    """Records by job, and an error for each that can't be read: it stops its own job alone."""

    items: dict[JobKey, Record] = {}
    invalid: dict[JobKey, BrokenRecordError] = {}
    written: dict[JobKey, datetime] = {}
    """When a record was last written, where the server says so."""
    refused: dict[JobKey, Refusal] = {}
    """Why nothing is started of a JobSpec object, where its status says so."""


class RecordStore:
    """Where run records are kept: in objects of one kind, one record each.

    Those of jobs whose specs are files: a ConfigMap each, whose annotations by others stay.
    """

    resource: Resource = api.CONFIG_MAPS
    selector = SELECTOR
    """Labels of the objects that hold records."""

    def ref(self, key: JobKey) -> Ref:
        """The object that holds the record of a job."""
        return Ref("ConfigMap", key.namespace, record_name(key.name))

    def key_of(self, item: dict[str, Any]) -> JobKey | None:
        """The job whose record the object is to hold, by its name: its labels prove nothing.

        None for any other object.
        """
        metadata = item["metadata"]
        name = metadata["name"].removesuffix(_SUFFIX)
        return JobKey(metadata["namespace"], name) if name != metadata["name"] else None

    def parse(self, item: dict[str, Any]) -> Record | None:
        """The record in the object; None if it has none yet. Errors: BrokenRecordError."""
        metadata = item["metadata"]
        key = JobKey(metadata["namespace"], metadata["name"].removesuffix(_SUFFIX))
        text = (item.get("data") or {}).get(KEY)
        record = decode_record(key, text, metadata["resourceVersion"])
        annotations = metadata.get("annotations")
        return replace(record, annotations=annotations) if annotations else record

    def write(self, client: Client, masked: MaskedRecord) -> Record:
        """The record with its new version.

        Errors: ConflictError or AlreadyExistsError when the record has changed since it was read,
        BrokenRecordError for one that could not be read again.
        """
        record = masked.record
        check_record(record)
        written = (api.update if record.version else api.create)(client, record_manifest(record))
        return self.parse(written) or record

    def withdraw(self, client: Client, record: Record) -> dict[str, Any] | None:
        """Leave the job without a record; the object that held it, if it stays.

        Errors: ConflictError once it has changed.
        """
        metadata = {"namespace": record.key.namespace, "name": record_name(record.key.name)}
        metadata["resourceVersion"] = record.version
        api.delete(client, api.CONFIG_MAPS, metadata, OwnRecord(record.key))
        return None

    def read(self, client: Client, key: JobKey) -> Record | None:
        """The record of one job; None if it has none. Errors: BrokenRecordError, and the API's."""
        item = api.get(client, self.ref(key))
        return self.parse(item) if item is not None else None

    def read_item(self, item: dict[str, Any]) -> Record | BrokenRecordError | None:
        """As `parse`, or why the record can't be read, without the object that holds it."""
        try:
            return self.parse(item)
        except BrokenRecordError as error:
            # What raised it holds the whole text.
            error.__context__ = None
            return error.with_traceback(None)

    def list(
        self, client: Client, namespace: str, selector: str = "", fields: str = ""
    ) -> RecordList:
        """Every record of a namespace ("" for all), of every source, that the selectors pick."""
        records = RecordList()
        labels = ",".join(filter(None, (self.selector, selector)))
        path = self.resource.path(namespace)
        for page in api.list_all(client, path, labels, fields, keep=self._keep):
            for key, at, record, refusal in page["items"]:
                if at is not None:
                    records.written[key] = at
                if refusal is not None:
                    records.refused[key] = refusal
                if isinstance(record, Record):
                    records.items[key] = record
                elif record is not None:
                    records.invalid[key] = record
        return records

    def closed_pods(self, client: Client, namespace: str) -> Iterator[str]:
        """UIDs of pods whose outcome is in a record of this namespace, without keeping the records.

        Records that can't be read are passed over. Errors: those of the API.
        """
        path = self.resource.path(namespace)
        for page in api.list_pages(client, path, self.selector, keep=self._keep):
            for _, _, record, _ in page["items"]:
                if isinstance(record, Record):
                    attempt = record.open_attempt
                    yield from record.pods.keys() - {attempt.uid if attempt else ""}

    def _keep(
        self, item: dict[str, Any]
    ) -> tuple[JobKey, datetime | None, Record | BrokenRecordError | None, Refusal | None] | None:
        key, record, refusal = self.key_of(item), self.read_item(item), read_refusal(item)
        if key is None or (record is None and refusal is None):
            return None
        return key, _written_at(item), record, refusal


class StatusRecords(RecordStore):
    """Of JobSpec objects: the status of each, which is written by itself."""

    resource = api.JOB_SPECS
    selector = ""

    def ref(self, key: JobKey) -> Ref:
        return Ref(JOB_SPEC, key.namespace, key.name)

    def key_of(self, item: dict[str, Any]) -> JobKey:
        return JobKey(item["metadata"]["namespace"], item["metadata"]["name"])

    def parse(self, item: dict[str, Any]) -> Record | None:
        key, version = self.key_of(item), item["metadata"]["resourceVersion"]
        try:
            return decode_status(key, item.get("status") or {}, job_object(item), version)
        except (ValueError, RecursionError) as error:
            place = JOB_SPEC.lower(), " --subresource=status"
            raise BrokenRecordError(key.namespace, key.name, str(error), *place) from None

    def write(self, client: Client, masked: MaskedRecord) -> Record:
        """Errors: NotFoundError, too: the object is gone, and the job with it."""
        record = masked.record
        check_record(record)
        return self.parse(self._put(client, record, encode_status(record, client.now()))) or record

    def withdraw(self, client: Client, record: Record) -> dict[str, Any]:
        return self._put(client, record, {"observedGeneration": -1})

    def _put(self, client: Client, record: Record, status: dict[str, Any]) -> dict[str, Any]:
        uid = record.object.uid if record.object is not None else ""
        return write_status(client, record.key, uid, record.version, status)


CONFIG_MAP_RECORDS = RecordStore()
STATUS_RECORDS = StatusRecords()


def write_status(
    client: Client, key: JobKey, uid: str, version: str, status: dict[str, Any]
) -> dict[str, Any]:
    """The JobSpec object with its new status. Errors: those of `StatusRecords.write`."""
    metadata = {"namespace": key.namespace, "name": key.name}
    metadata |= {"uid": uid, "resourceVersion": version}
    head = {"apiVersion": API_VERSION, "kind": JOB_SPEC, "metadata": metadata}
    return api.update(client, {**head, "status": status}, "/status")


def read_refusal(item: dict[str, Any]) -> Refusal | None:
    """Why nothing is started of the object, where its status says so: a ConfigMap has none."""
    status = item.get("status") or {}
    words = (str(status.get(name, "")) for name in ("reason", "message"))
    seen = status.get("observedGeneration", -1)
    return (seen, *words) if status.get("state") == INVALID else None


def job_object(item: dict[str, Any]) -> JobObject:
    """What is known of a JobSpec object beside its spec."""
    metadata, suspend = item["metadata"], (item.get("spec") or {}).get("suspend")
    return JobObject(metadata["uid"], metadata.get("generation", 0), bool(suspend))


def list_records(
    client: Client, namespace: str, selector: str = "", fields: str = ""
) -> RecordList:
    """As `RecordStore.list`, of both stores. A cluster need not have JobSpec objects."""
    records = CONFIG_MAP_RECORDS.list(client, namespace, selector, fields)
    with suppress(NotFoundError, ForbiddenError):
        objects = STATUS_RECORDS.list(client, namespace, selector, fields)
        for name in ("items", "invalid", "written", "refused"):
            getattr(records, name).update(getattr(objects, name))
    return records


def read_record(client: Client, key: JobKey) -> Record | None:
    """As `RecordStore.read`, of the store that has it."""
    record = CONFIG_MAP_RECORDS.read(client, key)
    with suppress(ForbiddenError):
        return record or STATUS_RECORDS.read(client, key)
    return None


def write_record(client: Client, masked: MaskedRecord) -> Record:
    """As `RecordStore.write`, to the store that it was read from."""
    store = CONFIG_MAP_RECORDS if masked.record.object is None else STATUS_RECORDS
    return store.write(client, masked)


def record_manifest(record: Record) -> dict[str, Any]:
    """The ConfigMap that holds a record."""
    metadata: dict[str, Any] = {
        "name": record_name(record.key.name),
        "namespace": record.key.namespace,
        "labels": {
            MANAGED_BY: MANAGER,
            COMPONENT: RECORD,
            JOB: record.key.name,
            SOURCE: record.source,
            **orphaned_on(record.annotations),
        },
    }
    if record.annotations:
        metadata["annotations"] = dict(record.annotations)
    if record.version:
        metadata["resourceVersion"] = record.version
    data = {KEY: encode_record(record)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _written_at(item: dict[str, Any]) -> datetime | None:
    """When the record was last written, by its managed fields and the server's clock."""
    times = [entry.get("time") for entry in item["metadata"].get("managedFields") or ()]
    return parse_time(max(filter(None, times), default=None))
