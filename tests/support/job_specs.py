"""JobSpec objects of a test's namespace, read from the API and never through the engine."""

from collections.abc import Callable
from typing import Any

from tests.support.api import Api, Object
from tests.support.argocd import health_of
from tests.support.engine import Engine
from tests.support.kstatus import STATES, kstatus

JOB_SPECS = "jobs.engine/v1alpha1/jobspecs"
STATUS = "jobspecs/status"
"""As roles, webhooks and faults name it."""
ENDED = ("Succeeded", "Failed", "Cancelled", "InvalidSpec")
Status = dict[str, Any]


class JobSpecs:
    """JobSpec objects of one namespace. At whatever step of its life one is read, other tools see
    the state in it that the engine means.
    """

    def __init__(self, engine: Engine) -> None:
        self.api, self.namespace = Api.from_kubeconfig(engine.kubeconfig), engine.namespace

    def get(self, name: str) -> Object:
        found = self.api.get(JOB_SPECS, name, self.namespace)
        _assert_seen_alike(found)
        return found

    def status(self, name: str) -> Status:
        found: Status = self.get(name).get("status") or {}
        return found

    def patch(self, name: str, **spec: Any) -> Object:
        return self.api.patch(JOB_SPECS, name, {"spec": spec}, self.namespace)

    def delete(self, name: str, propagation: str = "Background") -> None:
        self.api.delete(JOB_SPECS, name, self.namespace, propagation=propagation)

    def wait(self, name: str, is_so: Callable[[Status], bool], what: str) -> Status:
        def found() -> Status | None:
            there = self.api.find(JOB_SPECS, name, self.namespace)
            if there is None:
                return None
            _assert_seen_alike(there)
            status: Status = there.get("status") or {}
            return status if _follows(there) and is_so(status) else None

        return self.api.wait(found, what)

    def wait_for(self, name: str, *states: str) -> Status:
        """The status once it follows the newest spec and is in one of these states."""
        return self.wait(name, lambda status: status["state"] in states, f"{states} of {name}")

    def ended(self, name: str) -> Status:
        return self.wait_for(name, *ENDED)

    def pods(self, name: str) -> list[Object]:
        return self.api.list("pods", self.namespace, labels=f"jobs.engine/job={name}")

    def running_pod(self, name: str) -> Object:
        def running() -> Object | None:
            pods = [p for p in self.pods(name) if "deletionTimestamp" not in p["metadata"]]
            return next((p for p in pods if p["status"].get("phase") == "Running"), None)

        return self.api.wait(running, f"running pod of {name}")

    def wait_until_nothing_is_left(self, name: str) -> None:
        def left() -> list[str]:
            kinds = ("pods", "secrets", "configmaps")
            labels = f"jobs.engine/job={name}"
            return [
                f"{kind}/{item['metadata']['name']}"
                for kind in kinds
                for item in self.api.list(kind, self.namespace, labels=labels)
            ]

        self.api.wait(lambda: not left(), f"end of all that {name} had")


def conditions(status: Status) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


def _follows(item: Object) -> bool:
    seen = (item.get("status") or {}).get("observedGeneration")
    return bool(seen == item["metadata"]["generation"])


def _assert_seen_alike(item: Object) -> None:
    if "deletionTimestamp" in item["metadata"]:
        return
    seen = kstatus(item), health_of(item)[0]
    if not _follows(item):
        assert seen == ("InProgress", "Progressing"), item["status"]
        return
    expected = STATES[item["status"]["state"]]
    assert conditions(item["status"]) == expected.conditions
    assert seen == (expected.kstatus, expected.argocd), item["status"]
