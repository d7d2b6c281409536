"""One namespace of a sandbox, as the tests use it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from engine.sandbox import Sandbox
from tests.support.client import JSON_PATCH, Client, Obj
from tests.support.http import Reply

GATE = "jobs.engine/dependents"


def container(name: str = "main", image: str = "registry.example/tool:1", **more: Any) -> Obj:
    return {"name": name, "image": image, **more}


@dataclass(frozen=True)
class Namespace:
    """Requests in the namespace ``ci``, and looks at what came of them."""

    sandbox: Sandbox
    client: Client

    @classmethod
    def of(cls, sandbox: Sandbox) -> Namespace:
        sandbox.namespace("ci")
        return cls(sandbox, Client(sandbox.url))

    def path(self, resource: str, name: str = "", sub: str = "") -> str:
        parts = [f"/api/v1/namespaces/ci/{resource}", name, sub]
        return "/".join(part for part in parts if part)

    def start(self, name: str = "job", /, **spec: Any) -> Reply:
        """Create a Pod that runs once, and let the node see it."""
        body: Obj = {
            "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "containers": [container()], **spec},
        }
        reply = self.client.post(self.path("pods"), body)
        self.sandbox.clock.settle()
        return reply

    def open_gate(self, name: str = "job") -> Reply:
        steps = [{"op": "remove", "path": "/spec/schedulingGates"}]
        reply = self.client.patch(self.path("pods", name), steps, JSON_PATCH)
        self.sandbox.clock.settle()
        return reply

    def pod(self, name: str = "job") -> Obj:
        body: Obj = self.client.get(self.path("pods", name)).body
        return body

    def phase(self, name: str = "job") -> str:
        return str(self.pod(name)["status"]["phase"])

    def state(self, which: str = "main", name: str = "job") -> Obj:
        """The state of one container."""
        status = self.pod(name)["status"]
        entries = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        state: Obj = next(entry["state"] for entry in entries if entry["name"] == which)
        return state

    def waiting(self, which: str = "main", name: str = "job") -> tuple[str, str]:
        waiting = self.state(which, name)["waiting"]
        return waiting["reason"], waiting.get("message", "")

    def condition(self, kind: str, name: str = "job") -> Obj:
        conditions = self.pod(name)["status"].get("conditions", ())
        return next((one for one in conditions if one["type"] == kind), {})

    def reasons(self, name: str = "job") -> list[str]:
        """The reasons of the Pod's Events, in the order in which they were first written."""
        found = self.client.get(self.path("events"), fieldSelector=f"involvedObject.name={name}")
        items = sorted(
            found.body["items"], key=lambda event: int(event["metadata"]["resourceVersion"])
        )
        return [event["reason"] for event in items]

    def log(self, which: str = "main", name: str = "job", **query: object) -> str:
        return str(self.client.get(self.path("pods", name, "log"), container=which, **query).body)

    def advance(self, seconds: float) -> None:
        self.sandbox.clock.advance(seconds)

    def secret(self, name: str, **texts: str) -> Reply:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return self.client.post(self.path("secrets"), {"metadata": {"name": name}, "data": data})

    def login(self, name: str, host: str, user: str, password: str) -> Reply:
        auths = {"auths": {host: {"username": user, "password": password}}}
        body = {
            "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": json.dumps(auths)},
        }
        return self.client.post(self.path("secrets"), body)
