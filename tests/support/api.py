"""Requests to an API server by resource, which must succeed; independent of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.support.client import JSON_PATCH, MERGE, STRATEGIC, Client
from tests.support.http import Reply
from tests.support.recorder import Recorder

Object = dict[str, Any]
T = TypeVar("T")

PATCH_TYPES = {"json": JSON_PATCH, "merge": MERGE, "strategic": STRATEGIC}


class ApiError(Exception):
    """The API server refused; carries its Status."""

    def __init__(self, method: str, path: str, reply: Reply) -> None:
        super().__init__(f"{method} {path}: {reply.code} {reply.message}")
        self.status = reply.code
        self.message = reply.message
        self.reason = str(reply.body.get("reason", "")) if isinstance(reply.body, dict) else ""


class Api:
    """Verbs over plain dicts. `resource` is the plural: "pods", "batch/v1/jobs".

    Errors: ApiError for a refusal, OSError when the server can't be reached.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    def from_kubeconfig(cls, path: Path, *, user_agent: str = "engine-tests") -> Api:
        return cls(Client.from_kubeconfig(path, user_agent=user_agent))

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
        """`kind` is a key of PATCH_TYPES."""
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
        reply = self.client.get(path, container=container)
        if reply.code != 200:
            raise ApiError("GET", path, reply)
        return reply.data.decode()

    def watch(
        self, resource: str, namespace: str | None = None, *, labels: str | None = None
    ) -> Recorder:
        """To be entered before the action whose events are wanted."""
        return Recorder(self.client, path_of(resource, namespace), labels)

    def wait(
        self, ask: Callable[[], T | None], what: str, timeout: float = 60.0, *, every: float = 0.05
    ) -> T:
        """Ask until the answer is truthy, and return it.

        Errors: TimeoutError that says what was waited for and the last answer.
        """
        deadline = time.monotonic() + timeout
        while not (answer := ask()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout:.0f} s still no {what}; last: {answer!r}")
            time.sleep(every)
        return answer

    def _must(self, method: str, path: str, body: object = None, **more: Any) -> Object:
        reply = self.client.call(method, path, body, **more)
        if reply.code >= 300:
            raise ApiError(method, path, reply)
        found: Object = reply.body
        return found


def path_of(resource: str, namespace: str | None = None, name: str | None = None) -> str:
    *group, plural = resource.split("/")
    steps = ["/apis", *group] if group else ["/api", "v1"]
    steps += ["namespaces", namespace] if namespace else []
    return "/".join([*steps, plural, *([name] if name else [])])
