"""Run records as ConfigMaps: read them all, write one by compare-and-swap."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.record import Record, record_from_data, record_to_data
from engine.errors import ApiError
from engine.refs import JobKey, Ref, record_name
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

SELECTOR = f"{COMPONENT}={RECORD}"
KEY = "record.json"


@dataclass(frozen=True, slots=True)
class RecordList:
    """Records by job, and an error for each that can't be read: it stops its own job alone."""

    items: dict[JobKey, Record] = field(default_factory=dict)
    invalid: dict[JobKey, ApiError] = field(default_factory=dict)


def list_records(client: Client, namespace: str, selector: str = "") -> RecordList:
    """Every record of a namespace ("" for all), of every source, that `selector` picks too."""
    records = RecordList()
    path = api.CONFIG_MAPS.path(namespace)
    for page in api.list_all(client, path, ",".join(filter(None, (SELECTOR, selector)))):
        for item in page["items"]:
            key = key_of(item)
            try:
                records.items[key] = parse_record(item)
            except ApiError as error:
                records.invalid[key] = error
    return records


def recorded_pod_uids(client: Client, namespace: str) -> Iterator[str]:
    """UIDs of pods whose outcome is in a record of this namespace, without keeping the records.

    Records that can't be read are passed over. Errors: those of the API.
    """
    for page in api.list_pages(client, api.CONFIG_MAPS.path(namespace), SELECTOR):
        for item in page["items"]:
            try:
                attempts = json.loads(item["data"][KEY]).get("attempts") or ()
                yield from [a["uid"] for a in attempts if a.get("outcome") and a.get("uid")]
            except (KeyError, TypeError, ValueError, AttributeError):
                continue


def read_record(client: Client, key: JobKey) -> Record | None:
    """The record of one job; None if there is none. Errors: ApiError, also for a broken record."""
    item = api.get(client, Ref("ConfigMap", key.namespace, record_name(key.name)))
    return parse_record(item) if item is not None else None


def write_record(client: Client, record: Record) -> Record:
    """`record` with its new version.

    Errors: ConflictError or AlreadyExistsError when somebody else wrote it meanwhile.
    """
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
    if record.version:
        metadata["resourceVersion"] = record.version
    text = json.dumps(record_to_data(record), separators=(",", ":"), ensure_ascii=False)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}


def key_of(item: dict[str, Any]) -> JobKey:
    """The job that a record is of, as far as its metadata tells."""
    metadata = item["metadata"]
    named = (metadata.get("labels") or {}).get(JOB)
    return JobKey(metadata["namespace"], named or metadata["name"].removesuffix(record_name("")))


def parse_record(item: dict[str, Any]) -> Record:
    """Errors: ApiError when the ConfigMap holds no record that can be read."""
    metadata = item["metadata"]
    where = f"configmap/{metadata['namespace']}/{metadata['name']}"
    try:
        data = json.loads(item["data"][KEY])
        return record_from_data(key_of(item), data, metadata["resourceVersion"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApiError(
            f"this run record can't be read: {type(error).__name__} {error}",
            where=where,
            hint="delete it to forget the job's runs; its spec will then run again",
            status=200,
            reason="BrokenRecord",
        ) from None
