"""The engine's pods in one namespace, and how those ended that are gone."""

import sys
from collections.abc import Mapping
from typing import Any

from engine.cluster import api
from engine.informers.informer import TOMBSTONES, Informer, Manifest
from engine.informers.reflector import WatchContext
from engine.lifecycle.state import is_finished, slim_pod
from engine.refs import JobKey, Ref, parse_pod_name
from engine.status.deletion import UNSEEN, Deletion, read_gone
from engine.status.outcome import Outcome

_SHORT = 64
Deletions = Mapping[str, Deletion]


class PodInformer(Informer[Manifest]):
    """All pods of one namespace that a label selector picks, by job and UID.

    Guarantees: a pod is its name's job's, whatever its labels say. One whose deletion was seen
    never comes back, however late a reply that still has it. A pod that the selector
    no longer picks is reported as deleted, too; `get` finds out.
    """

    def __init__(self, context: WatchContext, namespace: str, selector: str) -> None:
        super().__init__(context, api.PODS.path(namespace), selector)
        self._namespace = namespace
        self._deletions: dict[str, Deletion] = {}
        """What was seen of the deletion of pods that are still there, by UID."""
        self._outcomes: dict[str, Outcome] = {}
        """How pods ended that are gone, by UID; the oldest ones are dropped."""

    def get(self, name: str, uid: str) -> Manifest | None:
        """The very pod, as the API has it now; None when it is gone.

        The answer is stored, also that of a pod that was reported as deleted before.
        Errors: those of the request.
        """
        key = JobKey(self._namespace, (parse_pod_name(name) or (name,))[0])
        buried = self._tombstones.get(uid)
        found = api.get(self._context.client, Ref("Pod", self._namespace, name))
        is_same = found is not None and found["metadata"]["uid"] == uid
        with self._lock:
            if not is_same:
                self._delete(key, uid, sys.maxsize)
            elif buried is not None and self._tombstones.get(uid) == buried:
                del self._tombstones[uid]
                self._outcomes.pop(uid, None)
        if found is not None:
            self.upsert(found)
        return found if is_same else None

    def observe(self, key: JobKey) -> tuple[tuple[Manifest, ...], Deletions, Mapping[str, Outcome]]:
        """A job's pods, and at the same moment what was seen of their deletions, and how pods ended
        that are gone, by UID.
        """
        with self._lock:
            pods = self._items.get(key, {})
            seen = {uid: self._deletions[uid] for uid in pods.keys() & self._deletions.keys()}
            return tuple(pods.values()), seen, self._outcomes

    def _index(self, manifest: Manifest) -> tuple[JobKey, str] | None:
        parsed = parse_pod_name(manifest["metadata"]["name"])
        if parsed is None:
            return None
        return JobKey(self._namespace, parsed[0]), manifest["metadata"]["uid"]

    def _convert(self, manifest: Manifest) -> Manifest:
        """Without what no decision needs, which is most of a pod."""
        pod = slim_pod(manifest)
        return intern_strings(pod) if is_finished(pod) else pod

    def _before_upsert(self, key: JobKey, uid: str, item: Manifest) -> None:
        """Each state with a deletion, in any order, may say when it was asked for."""
        known = self._items.get(key, {}).get(uid)
        deletion = self._deletions.get(uid, UNSEEN).seen(item, known)
        if deletion is not UNSEEN:
            self._deletions[uid] = deletion

    def _before_delete(self, key: JobKey, uid: str, last: Manifest | None) -> None:
        last = last or self._items.get(key, {}).get(uid)
        if uid not in self._outcomes and last is not None:
            self._before_upsert(key, uid, last)
            deletion = self._deletions.get(uid, UNSEEN)
            self._outcomes[uid] = read_gone(last, deletion)
        self._deletions.pop(uid, None)
        if len(self._outcomes) > TOMBSTONES:
            del self._outcomes[next(iter(self._outcomes))]


def intern_strings(value: Any) -> Any:
    """The same, its short strings shared with all other pods: half the memory.

    Pays for a pod that is finished: it stays until its TTL has passed, thousands of them do.
    """
    if isinstance(value, dict):
        return {sys.intern(name): intern_strings(item) for name, item in value.items()}
    if isinstance(value, list):
        return [intern_strings(item) for item in value]
    if isinstance(value, str) and len(value) < _SHORT:
        return sys.intern(value)
    return value
