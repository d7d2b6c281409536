"""A small Kubernetes client for tests, independent of the engine and of the library it uses."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tests.cluster.access import Access
from tests.cluster.paths import path_of, with_query
from tests.cluster.watch import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Object = dict[str, Any]
T = TypeVar("T")

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    """The API server refused; carries its Status."""

    def __init__(self, method: str, path: str, response: Response) -> None:
        super().__init__(f"{method} {path}: {response.status} {response.message}")
        self.status = response.status
        self.message = response.message
        self.reason = str(response.json().get("reason", ""))


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Object:
        try:
            value = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def message(self) -> str:
        return str(self.json().get("message") or self.body.decode(errors="replace"))


class Api:
    """Verbs over plain dicts. `resource` is the plural: "pods", "batch/v1/jobs".

    Any thread may use it; each request has a connection of its own, so there is nothing to close.
    Errors: ApiError for a refusal, OSError when the server can't be reached.
    """

    def __init__(self, access: Access, *, user_agent: str = "engine-tests") -> None:
        self.access = access
        self._headers = {"User-Agent": user_agent, **access.headers}

    @classmethod
    def from_kubeconfig(cls, path: Path, *, user_agent: str = "engine-tests") -> Api:
        return cls(Access.read(path), user_agent=user_agent)

    def connect(self, timeout: float | None = 30.0) -> http.client.HTTPConnection:
        host, port, tls = self.access.host, self.access.port, self.access.tls
        if tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout)
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)

    def headers(self, **more: str) -> dict[str, str]:
        return {**self._headers, "Accept": "application/json", **more}

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        **query: str | None,
    ) -> Response:
        """One exchange; no status is an error."""
        target = with_query(path, query)
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers(**({"Content-Type": content_type} if data else {}))
        connection = self.connect()
        try:
            connection.request(method, target, body=data, headers=headers)
            response = connection.getresponse()
            return Response(response.status, dict(response.getheaders()), response.read())
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        return self._must("GET", path_of(resource, namespace, name))

    def find(self, resource: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None when there is none of that name."""
        try:
            return self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        path = path_of(resource, namespace)
        found = self._must("GET", path, labelSelector=labels, fieldSelector=fields)
        items: list[Object] = found["items"]
        return items

    def create(self, resource: str, body: Object, namespace: str | None = None) -> Object:
        return self._must("POST", path_of(resource, namespace), body)

    def replace(self, resource: str, body: Object, namespace: str | None = None) -> Object:
        return self._must("PUT", path_of(resource, namespace, body["metadata"]["name"]), body)

    def patch(
        self,
        resource: str,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        kind: str = "merge",
        **query: str | None,
    ) -> Object:
        """`kind` is a key of PATCH_TYPES; "apply" needs the query `fieldManager`."""
        path = path_of(resource, namespace, name)
        return self._must("PATCH", path, body, content_type=PATCH_TYPES[kind], **query)

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> Object:
        options: Object = {"propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return self._must("DELETE", path_of(resource, namespace, name), options)

    def logs(self, namespace: str, pod: str, container: str | None = None) -> str:
        path = f"{path_of('pods', namespace, pod)}/log"
        response = self.request("GET", path, container=container)
        if response.status != 200:
            raise ApiError("GET", path, response)
        return response.body.decode()

    def watch(
        self, resource: str, namespace: str | None = None, *, labels: str | None = None
    ) -> Recorder:
        """To be entered before the action whose events are wanted."""
        return Recorder(self, resource, namespace, labels)

    def wait(self, ask: Callable[[], T | None], what: str, timeout: float = 60.0) -> T:
        """Ask until the answer is truthy, and return it.

        Errors: TimeoutError that says what was waited for and the last answer.
        """
        deadline = time.monotonic() + timeout
        while not (answer := ask()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout:.0f} s still no {what}; last: {answer!r}")
            time.sleep(0.05)
        return answer

    def _must(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        **query: str | None,
    ) -> Object:
        response = self.request(method, path, body, content_type=content_type, **query)
        if response.status >= 300:
            raise ApiError(method, path, response)
        return response.json()
