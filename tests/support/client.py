"""Requests to an API server by path: nothing between a test and the server's words."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support import http as exchange
from tests.support.access import Access
from tests.support.http import Reply

Obj = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Client:
    """Any thread may use it; each request has a connection of its own: there is nothing to close.

    No status is an error. Errors: OSError when the server can't be reached, or breaks off.
    """

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        user_agent: str = "engine-tests",
    ) -> None:
        self.url = url
        self._tls = tls
        self._headers = {"User-Agent": user_agent, **(headers or {})}

    @classmethod
    def from_kubeconfig(cls, path: Path, *, user_agent: str = "engine-tests") -> Client:
        access = Access.read(path)
        return cls(access.url, access.tls, access.headers, user_agent=user_agent)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        """`body` is sent as JSON, `raw` as it is; what is None in `query` isn't sent."""
        sent = {**self._headers, "Content-Type": content_type, "Accept": accept, **(headers or {})}
        data = json.dumps(body).encode() if body is not None else raw
        url = self._url(path, query)
        return exchange.request(method, url, body=data, headers=sent, tls=self._tls)

    def get(self, path: str, **more: Any) -> Reply:
        return self.call("GET", path, **more)

    def post(self, path: str, body: object, **more: Any) -> Reply:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: object, **more: Any) -> Reply:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: object, content_type: str = MERGE, **more: Any) -> Reply:
        return self.call("PATCH", path, body, content_type=content_type, **more)

    def delete(self, path: str, body: object = None, **more: Any) -> Reply:
        return self.call("DELETE", path, body, **more)

    @contextmanager
    def watch(
        self, path: str, *, accept: str = "application/json", **query: Any
    ) -> Iterator[Watch]:
        """An open watch; it ends by itself after `timeoutSeconds`, 15 unless they are given."""
        url = self._url(path, {"watch": "true", "timeoutSeconds": 15, **query})
        connection = exchange.connect(url, self._tls)
        try:
            headers = {**self._headers, "Accept": accept}
            connection.request("GET", exchange.target_of(url), headers=headers)
            yield Watch(connection)
        finally:
            connection.close()

    def _url(self, path: str, query: Mapping[str, object]) -> str:
        given = {key: str(value) for key, value in query.items() if value is not None}
        return self.url + path + (f"?{urlencode(given)}" if given else "")


class Watch:
    """The events of one watch, each as soon as it is there."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._response = connection.getresponse()
        self.code = self._response.status

    def __iter__(self) -> Iterator[Obj]:
        while line := self._response.readline():
            yield json.loads(line)

    def take(self, count: int) -> list[Obj]:
        """The next events, without bookmarks."""
        taken: list[Obj] = []
        for event in self:
            if event["type"] != "BOOKMARK":
                taken.append(event)
            if len(taken) == count:
                break
        return taken

    def hang_up(self) -> None:
        """Wake a thread that waits for the next event."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def eventually(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first truthy answer. Errors: AssertionError when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := true():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not in {seconds} s")
