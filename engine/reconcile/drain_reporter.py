"""Say on a protected pod, once, that a drain of its node waits for it, and for how long at most."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.errors import EngineError
from engine.refs import JobKey, Ref, parse_pod_name
from engine.status.drain import drain_words, runs_on
from engine.status.outcome import EventReason
from engine.telemetry.events import Emit, Notice

_CORDONED = "spec.unschedulable=true"


class DrainReporter(Struct, eq=False):
    """Guarantees: asks for nothing while no protected pod runs; what can't be asked is no error."""

    client: Client
    emit: Emit
    _reported: set[str] = set()
    """UIDs of pods that run, and of which it was said."""

    def report(self, pods: Iterable[Mapping[str, Any]], *, on_pods: bool) -> None:
        """`pods` are all of the source; with `on_pods` it is an Event on each, too."""
        holding = {pod["metadata"]["uid"]: pod for pod in pods if drain_words(pod)}
        self._reported &= holding.keys()
        new = [pod for uid, pod in holding.items() if uid not in self._reported]
        cordoned = self._cordoned() if new else frozenset()
        for pod in new:
            parsed = parse_pod_name(pod["metadata"]["name"])
            if parsed is None or runs_on(pod) not in cordoned:
                continue
            ref = Ref("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
            uid, words = pod["metadata"]["uid"], drain_words(pod)
            self._reported.add(uid)
            self.emit(Notice(words, JobKey(ref.namespace, parsed[0]), warning=True))
            if on_pods:
                now, reason = self.client.now(), EventReason.HOLDS_DRAIN
                record_event(self.client, ref, uid, reason=reason, message=words, now=now)

    def _cordoned(self) -> frozenset[str]:
        pages = api.list_pages(self.client, api.NODES.path(""), fields=_CORDONED)
        try:
            return frozenset(one["metadata"]["name"] for page in pages for one in page["items"])
        except EngineError:
            return frozenset()
