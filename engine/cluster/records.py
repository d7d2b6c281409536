"""Run records as ConfigMaps: read them all, write one by compare-and-swap."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import BrokenRecordError
from engine.lifecycle.record import Record
from engine.lifecycle.record_codec import check_record, decode_record, encode_record
from engine.refs import JobKey, Ref, record_name
from engine.times import parse_time
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

SELECTOR = f"{COMPONENT}={RECORD}"
KEY = "record.json"
_SUFFIX = record_name("")


@dataclass(frozen=True, slots=True)
class RecordList:
    """Records by job, and an error for each that can't be read: it stops its own job alone."""

    items: dict[JobKey, Record] = field(default_factory=dict)
    invalid: dict[JobKey, BrokenRecordError] = field(default_factory=dict)
    written: dict[JobKey, datetime] = field(default_factory=dict)
    """When a record was last written, where the server says so."""


def list_records(
    client: Client, namespace: str, selector: str = "", fields: str = ""
) -> RecordList:
    """Every record of a namespace ("" for all), of every source, that the selectors pick, too."""
    records = RecordList()
    path = api.CONFIG_MAPS.path(namespace)
    labels = ",".join(filter(None, (SELECTOR, selector)))
    for page in api.list_all(client, path, labels, fields, keep=_read_item):
        for key, at, record in page["items"]:
            if at is not None:
                records.written[key] = at
            if isinstance(record, Record):
                records.items[key] = record
            else:
                records.invalid[key] = record
    return records


def _read_item(
    item: dict[str, Any],
) -> tuple[JobKey, datetime | None, Record | BrokenRecordError] | None:
    if not is_record(item):
        return None
    return key_of(item), _written_at(item), read_item(item)


def read_item(item: dict[str, Any]) -> Record | BrokenRecordError:
    """The record, or why it can't be read, without the ConfigMap that holds it."""
    try:
        return parse_record(item)
    except BrokenRecordError as error:
        # What raised it holds the whole text.
        error.__context__ = None
        return error.with_traceback(None)


def recorded_pod_uids(client: Client, namespace: str) -> Iterator[str]:
    """UIDs of pods whose outcome is in a record of this namespace, without keeping the records.

    Records that can't be read are passed over. Errors: those of the API.
    """
    path = api.CONFIG_MAPS.path(namespace)
    for page in api.list_pages(client, path, SELECTOR, keep=_read_item):
        for _, _, record in page["items"]:
            if isinstance(record, Record):
                attempt = record.open_attempt
                yield from record.pods.keys() - {attempt.uid if attempt else ""}


def read_record(client: Client, key: JobKey) -> Record | None:
    """The record of one job; None if there is none. Errors: BrokenRecordError, and the API's."""
    item = api.get(client, Ref("ConfigMap", key.namespace, record_name(key.name)))
    return parse_record(item) if item is not None else None


def write_record(client: Client, record: Record) -> Record:
    """`record` with its new version; annotations that others have made on it stay.

    Errors: ConflictError or AlreadyExistsError when the record has changed since it was read,
    BrokenRecordError for one that could not be read again.
    """
    check_record(record)
    manifest = _manifest(record)
    written = (api.update if record.version else api.create)(client, manifest)
    return parse_record(written)


def _manifest(record: Record) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": record_name(record.key.name),
        "namespace": record.key.namespace,
        "labels": {
            MANAGED_BY: MANAGER,
            COMPONENT: RECORD,
            JOB: record.key.name,
            SOURCE: record.source,
        },
    }
    if record.annotations:
        metadata["annotations"] = dict(record.annotations)
    if record.version:
        metadata["resourceVersion"] = record.version
    data = {KEY: encode_record(record)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def is_record(item: dict[str, Any]) -> bool:
    """Whether the ConfigMap is called as a record: its labels alone prove nothing."""
    return bool(item["metadata"]["name"].endswith(_SUFFIX))


def key_of(item: dict[str, Any]) -> JobKey:
    """The job that a record is of, by its name."""
    metadata = item["metadata"]
    return JobKey(metadata["namespace"], metadata["name"].removesuffix(_SUFFIX))


def _written_at(item: dict[str, Any]) -> datetime | None:
    """When the record was last written, by its managed fields and the server's clock."""
    times = [entry.get("time") for entry in item["metadata"].get("managedFields") or ()]
    return parse_time(max(filter(None, times), default=None))


def parse_record(item: dict[str, Any]) -> Record:
    """Errors: BrokenRecordError when the ConfigMap holds no record that can be read."""
    text = (item.get("data") or {}).get(KEY)
    metadata = item["metadata"]
    record = decode_record(key_of(item), text, metadata["resourceVersion"])
    annotations = metadata.get("annotations")
    return replace(record, annotations=annotations) if annotations else record
