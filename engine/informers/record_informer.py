"""Keep a local picture of the run records in one namespace: list once, then watch.

Whoever asks for a job to be cancelled or run again writes its record; an engine that stays hears
of it here.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from engine.cluster import api
from engine.cluster.api import version_number
from engine.cluster.client import Client
from engine.cluster.records import SELECTOR, key_of, parse_record
from engine.decide.record import Record
from engine.errors import ApiError
from engine.informers.reflector import Watcher
from engine.refs import JobKey

_TOMBSTONES = 10_000


class RecordInformer:
    """The records of one namespace, of every source.

    Guarantees: `on_change` is called with the job of every record that appears, changes or goes;
    of two versions the newer one counts, whatever the order they come in.
    Errors: `sync` raises what the list raises; a record that can't be read is its job's alone.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        on_change: Callable[[JobKey], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._path = api.CONFIG_MAPS.path(namespace)
        self._lock = threading.Lock()
        self._records: dict[JobKey, Record] = {}
        self._broken: dict[JobKey, ApiError] = {}
        self._gone: OrderedDict[JobKey, int] = OrderedDict()
        self._synced = False
        self.watcher = Watcher(
            client,
            self._path,
            SELECTOR,
            sync=self.sync,
            on_event=self._take,
            on_trouble=on_trouble,
        )

    def sync(self) -> str:
        """Read every record, page by page; what has changed or gone is reported. The version."""
        pages = api.list_all(self._client, self._path, SELECTOR)
        version = str(pages[0]["metadata"]["resourceVersion"])
        items = {key_of(item): item for page in pages for item in page["items"]}
        with self._lock:
            known = {*self._records, *self._broken}
            for key in known - items.keys():
                self._bury(key, version_number(version))
            changed = (known - items.keys()) | {k for k, item in items.items() if self._keep(item)}
            self._synced = True
        for key in changed:
            self._on_change(key)
        return version

    @property
    def has_synced(self) -> bool:
        return self._synced

    def start(self) -> None:
        """List and watch in a thread of its own."""
        self.watcher.start("")

    def newest(self, key: JobKey, known: Record | None) -> Record | None:
        """The job's record, unless `known` is newer: a write of ours may be ahead of the watch.

        Errors: ApiError when the record can't be read.
        """
        with self._lock:
            if key in self._broken:
                raise self._broken[key]
            found, gone = self._records.get(key), self._gone.get(key, 0)
        if known is None:
            return found
        if found is None:
            return None if gone > version_number(known.version) else known
        return found if version_number(found.version) > version_number(known.version) else known

    def all_records(self) -> list[Record]:
        with self._lock:
            return list(self._records.values())

    def _take(self, kind: str, item: dict[str, Any]) -> None:
        key = key_of(item)
        with self._lock:
            if kind == "DELETED":
                self._bury(key, version_number(item["metadata"]["resourceVersion"]))
            elif not self._keep(item):
                return
        self._on_change(key)

    def _keep(self, item: dict[str, Any]) -> bool:
        """Whether this told anything new."""
        key, version = key_of(item), version_number(item["metadata"]["resourceVersion"])
        known = self._records.get(key)
        if version <= self._gone.get(key, 0) or (
            known and version <= version_number(known.version)
        ):
            return False
        try:
            self._records[key] = parse_record(item)
            self._broken.pop(key, None)
        except ApiError as error:
            self._records.pop(key, None)
            self._broken[key] = error
        return True

    def _bury(self, key: JobKey, version: int) -> None:
        self._records.pop(key, None)
        self._broken.pop(key, None)
        self._gone[key] = max(version, self._gone.pop(key, 0))
        if len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)
