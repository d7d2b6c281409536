"""The yardstick of every row on a cluster: urllib3 and json, nothing between."""

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3

from tests.support.access import Access

THREADS = 8
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_REFUSED = 400


class Bare:
    """What a program would use that did nothing but the row's own work."""

    def __init__(self, kubeconfig: Path) -> None:
        access = Access.read(kubeconfig)
        pool = urllib3.HTTPSConnectionPool if access.tls else urllib3.HTTPConnectionPool
        more: dict[str, Any] = {"ssl_context": access.tls} if access.tls else {}
        self._pool = pool(access.host, access.port, maxsize=THREADS + 1, retries=False, **more)
        self._headers = {"User-Agent": "bare", **access.headers}

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = "*/*",
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": accept, "Content-Type": content_type}
        answer = self._pool.request(method, path, body=data, headers=headers)
        return answer.status, answer.data

    def write(
        self, method: str, path: str, body: object, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """The object that the server answers with. Errors: RuntimeError for a rejection."""
        status, data = self.send(method, path, body, content_type=content_type)
        if status >= _REFUSED:
            raise RuntimeError(f"{method} {path}: {status} {data[:300]!r}")
        found: dict[str, Any] = json.loads(data)
        return found

    def get(self, path: str, accept: str = "*/*") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.send("GET", path, accept=accept)[1])
        return found

    def stream(self, path: str) -> Any:
        """An open watch, to be read line by line."""
        return self._pool.request(
            "GET", path, headers=self._headers, preload_content=False, timeout=600
        )


def in_threads(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Errors: the first that any of them raises."""
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, items))
