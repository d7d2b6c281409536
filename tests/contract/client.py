"""A bare HTTP client for the contract tests: nothing between a test and the server's words."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Obj = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Reply:
    """A reply and its body as JSON (or as text where it isn't JSON)."""

    code: int
    body: Any
    headers: urllib3.HTTPHeaderDict

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def reason(self) -> str:
        return str(self.body["reason"])

    @property
    def rv(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Client:
    """Requests against one API server."""

    def __init__(self, url: str, **tls: str) -> None:
        self.url = url
        self.pool = urllib3.PoolManager(
            maxsize=16,
            retries=False,
            timeout=20.0,
            ca_certs=tls.get("ca"),
            cert_file=tls.get("cert"),
            key_file=tls.get("key"),
        )

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Client:
        """For the test cluster's kubeconfig: JSON, with a client certificate in files."""
        config = json.loads(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        return cls(
            cluster["server"],
            ca=cluster["certificate-authority"],
            cert=user["client-certificate"],
            key=user["client-key"],
        )

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        sent = {"Content-Type": content_type, "Accept": accept, "User-Agent": "contract/1"}
        data = json.dumps(body).encode() if body is not None else raw
        where = self.url + path + (f"?{_encoded(query)}" if query else "")
        response = self.pool.request(method, where, body=data, headers={**sent, **(headers or {})})
        text = response.data
        try:
            read = json.loads(text)
        except ValueError:
            read = text.decode()
        return Reply(response.status, read, response.headers)

    def get(self, path: str, **more: Any) -> Reply:
        return self.call("GET", path, **more)

    def post(self, path: str, body: object, **more: Any) -> Reply:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: object, **more: Any) -> Reply:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: object, content_type: str = MERGE, **more: Any) -> Reply:
        return self.call("PATCH", path, body, content_type=content_type, **more)

    def apply(self, path: str, body: object, manager: str = "tester", **more: Any) -> Reply:
        return self.patch(path, body, APPLY, fieldManager=manager, **more)

    def delete(self, path: str, body: object = None, **more: Any) -> Reply:
        return self.call("DELETE", path, body, **more)

    @contextmanager
    def watch(
        self, path: str, *, accept: str = "application/json", **query: Any
    ) -> Iterator[Watch]:
        """An open watch; events are read one by one, with a limit of time."""
        query = {"watch": "true", "timeoutSeconds": 15, **query}
        response = self.pool.request(
            "GET",
            f"{self.url}{path}?{_encoded(query)}",
            headers={"Accept": accept},
            preload_content=False,
        )
        try:
            yield Watch(response)
        finally:
            response.close()
            response.release_conn()


class Watch:
    """The events of one watch."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.code = response.status
        self._chunks = response.stream(65536)
        self._buffer = b""

    def __iter__(self) -> Iterator[Obj]:
        for chunk in self._chunks:
            self._buffer += chunk
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
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


def _encoded(query: dict[str, object]) -> str:
    return urlencode({key: str(value) for key, value in query.items()})


def eventually(true: Callable[[], Any], seconds: float = 15.0) -> Any:
    """The first truthy answer. Errors: AssertionError when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := true():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not in {seconds} s")
