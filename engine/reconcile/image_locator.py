"""Where an image is, asked for when an attempt is to do without its registry."""

import threading
import time
from itertools import islice

from msgspec import Struct, field

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.status.node_images import full_image_name, has_image, usable_host

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
