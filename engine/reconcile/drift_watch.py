"""Notice when somebody touches a Secret or ConfigMap that a pod of the engine's needs."""

from collections.abc import Callable
from typing import Any

from engine.cluster import objects
from engine.cluster.client import METADATA, METADATA_LIST, Client
from engine.errors import EngineError
from engine.informers.reflector import Watcher
from engine.refs import JobKey
from engine.wellknown import COMPONENT, JOB, RECORD

KINDS = ("Secret", "ConfigMap")


class DriftWatch:
    """Metadata-only watches of what the engine's pods own in one namespace.

    Guarantees: `on_touch` is called with the job and its pod's UID after an owned object was
    changed or deleted. Without the right to watch them, nobody is told and nothing else is lost.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        selector: str,
        on_touch: Callable[[JobKey, str], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._selector = f"{selector},{COMPONENT}!={RECORD}"
        self._on_touch = on_touch
        self._on_trouble = on_trouble
        self.watchers: list[Watcher] = []

    def start(self, *, at_once: bool = True) -> None:
        """Hear of every change from now on; `at_once` before this returns, else a little later."""
        for kind in KINDS:
            path = objects.collection_path(kind, self._namespace)
            version = ""
            if at_once:
                try:
                    version = self._version(path)
                except EngineError:
                    continue
            watcher = Watcher(
                self._client,
                path,
                self._selector,
                sync=lambda path=path: self._version(path),  # type: ignore[misc]
                on_event=self._take,
                on_trouble=self._on_trouble,
                accept=METADATA,
                optional=True,
            )
            watcher.start(version)
            self.watchers.append(watcher)

    def _version(self, path: str) -> str:
        pages = objects.list_pages(self._client, path, self._selector, page=1, accept=METADATA_LIST)
        return str(next(pages)["metadata"]["resourceVersion"])

    def _take(self, kind: str, item: dict[str, Any]) -> None:
        if kind not in {"MODIFIED", "DELETED"}:
            return
        metadata = item["metadata"]
        job = (metadata.get("labels") or {}).get(JOB)
        for owner in metadata.get("ownerReferences") or ():
            if job:
                self._on_touch(JobKey(self._namespace, job), owner["uid"])
