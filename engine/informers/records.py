"""The run records in one namespace, of every source.

`engine cancel` and `engine rerun` write a job's record; an engine that stays sees it here.
"""

from typing import Any

from engine.cluster.api import version_number
from engine.cluster.records import RecordStore
from engine.errors import BrokenRecordError
from engine.informers.informer import Informer, Manifest
from engine.informers.reflector import WatchContext
from engine.lifecycle.record import Record
from engine.refs import JobKey


class RecordInformer(Informer[Any]):
    """Records by job; one that can't be read is kept as the error, and is its job's alone."""

    def __init__(self, context: WatchContext, store: RecordStore, namespace: str) -> None:
        super().__init__(context, store.resource.path(namespace), store.selector)
        self._store = store

    def newest(self, key: JobKey, known: Record | None) -> Record | None:
        """The job's record, unless `known` is newer: a write of ours may be ahead of the watch.

        Errors: BrokenRecordError when the record can't be read.
        """
        with self._lock:
            item = self._items.get(key, {}).get(str(key))
            version = self._versions.get(str(key), 0)
            deleted = self._tombstones.get(str(key), 0)
        found = self._record_of(item)
        if isinstance(found, BrokenRecordError):
            raise found.with_traceback(None)
        if known is None:
            return found
        known_version = version_number(known.version)
        if item is None:
            return None if deleted > known_version else known
        return found if version > known_version else known

    def all_records(self) -> list[Record]:
        """Every record that can be read."""
        records = map(self._record_of, self.all_items())
        return [record for record in records if isinstance(record, Record)]

    def version_of(self, key: JobKey) -> str:
        """Version of the object that is to hold a record; "" where it has to be made."""
        with self._lock:
            return str(self._versions.get(str(key), ""))

    def delete(self, record: Record) -> None:
        """Take in that the object is gone since it held `record`."""
        with self._lock:
            self._delete(record.key, str(record.key), version_number(record.version) + 1)

    def _record_of(self, item: Any) -> Record | BrokenRecordError | None:
        """Hook: the record of what is kept of an object, if there is one."""
        found: Record | BrokenRecordError | None = item
        return found

    def _index(self, manifest: Manifest) -> tuple[JobKey, str] | None:
        key = self._store.key_of(manifest)
        return (key, str(key)) if key is not None else None

    def _convert(self, manifest: Manifest) -> Any:
        return self._store.read_item(manifest)
