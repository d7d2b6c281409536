"""JobSpec and JobDefaults objects: specs, and in the status of a JobSpec the job's record.

One list and one watch serve both: the record is read with the spec.
"""

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from engine.api import yaml_reader
from engine.api.model import JobObject
from engine.api.spec_hash import spec_hash
from engine.api.versions import API_VERSION
from engine.cluster.api import JOB_SPECS, Resource
from engine.cluster.records import STATUS_RECORDS, Refusal, job_object, read_refusal
from engine.errors import BrokenRecordError
from engine.informers.informer import Informer, Manifest
from engine.informers.records import RecordInformer
from engine.informers.reflector import WatchContext
from engine.lifecycle.record import Record
from engine.refs import JobKey
from engine.wellknown import MANAGED_BY, MANAGED_BY_ENGINE, TOOLS_PREFIXES


class SpecObject(Struct, frozen=True):
    """What is kept of an object."""

    resource: Resource
    key: JobKey
    object: JobObject
    text: bytes
    """What a spec file would say, in JSON; empty for an object that is no matter of this engine."""
    record: Record | BrokenRecordError | None
    refusal: Refusal | None


def read_object(resource: Resource, item: dict[str, Any]) -> SpecObject:
    """What is kept of one. An object that is being deleted is as one that is gone."""
    metadata, key, record = item["metadata"], STATUS_RECORDS.key_of(item), None
    refusal, spec, text = read_refusal(item), item.get("spec"), b""
    manager = spec.get("managedBy") if isinstance(spec, dict) else None
    if "deletionTimestamp" not in metadata and manager in (None, MANAGED_BY_ENGINE):
        record = STATUS_RECORDS.read_item(item)
        own = {"name": key.name, "namespace": key.namespace}
        for name in ("labels", "annotations"):
            if kept := _without_tools(metadata.get(name) or {}):
                own[name] = kept
        data = {"apiVersion": API_VERSION, "kind": resource.kind, "metadata": own, "spec": spec}
        text = json.dumps(data, separators=(",", ":")).encode()
    return SpecObject(resource, key, job_object(item), text, record, refusal)


def object_hash(item: dict[str, Any]) -> tuple[str, str]:
    """Run hash, and digests of the fields, of a JobSpec object."""
    documents, _ = yaml_reader.read_object(read_object(JOB_SPECS, item).text, "")
    return spec_hash(documents[0])


def _without_tools(values: dict[str, str]) -> Any:
    """Labels or annotations but those by which deploying tools know their own objects."""
    return {
        key: value
        for key, value in values.items()
        if key != MANAGED_BY and not key.startswith(TOOLS_PREFIXES)
    }


class SpecInformer(RecordInformer):
    """The objects of one kind in a namespace, or ("") in all.

    Guarantees: `on_spec` is called after every change but those of a status.
    """

    def __init__(
        self,
        context: WatchContext,
        namespace: str,
        on_spec: Callable[[], object] = bool,
        selector: str = "",
        resource: Resource = JOB_SPECS,
    ) -> None:
        Informer.__init__(self, context, resource.path(namespace), selector)
        self._store = STATUS_RECORDS
        self._resource = resource
        self._on_spec = on_spec

    def spec_of(self, key: JobKey) -> SpecObject | None:
        """What is known of one object."""
        return next(iter(self.items(key)), None)

    def _record_of(self, item: SpecObject | None) -> Record | BrokenRecordError | None:
        return item.record if item is not None else None

    def _convert(self, manifest: Manifest) -> SpecObject:
        return read_object(self._resource, manifest)

    def _before_upsert(self, key: JobKey, uid: str, item: SpecObject) -> None:
        before = self._items.get(key, {}).get(uid)
        if before is None or (before.text, before.object) != (item.text, item.object):
            self._on_spec()

    def _before_delete(self, key: JobKey, uid: str, last: SpecObject | None) -> None:
        del key, uid, last
        self._on_spec()
