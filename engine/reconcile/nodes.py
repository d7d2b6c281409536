"""What nodes are asked for: which have an image that a registry lacks, and which are drained."""

import threading
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct, field

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.errors import EngineError
from engine.refs import JobKey, Ref, parse_pod_name
from engine.status.drain import drain_words, runs_on
from engine.status.node_images import full_image_name, has_image, usable_host
from engine.status.outcome import EventReason
from engine.telemetry.events import Emit, Notice

_CORDONED = "spec.unschedulable=true"
_PAGE_SIZE = 100
_MOST_HOSTS = 100
"""More of them would only make pods larger."""
_FRESH_FOR = 10.0
"""Seconds; jobs of one image that lose their registry together need one list."""


class ImageLocator(Struct, eq=False):
    """Finds nodes that have an image. Safe to use from several threads.

    Guarantees: no error. Without the right to list nodes there is no answer; `engine doctor` says
    whether there is that right.
    """

    client: Client
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def hosts_with(self, image: str) -> tuple[str, ...]:
        """Host names of nodes that have the image and take pods, a hundred at most."""
        name = full_image_name(image)
        with self._lock:
            now = time.monotonic()
            self._known = {k: v for k, v in self._known.items() if now - v[0] < _FRESH_FOR}
            if name not in self._known:
                self._known[name] = now, self._find(name)
            return self._known[name][1]

    def _find(self, name: str) -> tuple[str, ...]:
        pages = api.list_pages(self.client, api.NODES.path(""), size=_PAGE_SIZE)
        nodes = (node for page in pages for node in page["items"] if has_image(node, name))
        try:
            return tuple(islice(filter(None, map(usable_host, nodes)), _MOST_HOSTS))
        except EngineError:
            return ()


class DrainReporter(Struct, eq=False):
    """Says on a protected pod, once, that a drain of its node waits for it, and how long at most.

    Guarantees: asks for nothing while no protected pod runs; what can't be asked is no error.
    """

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
