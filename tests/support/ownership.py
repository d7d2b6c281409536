"""An eye on every write: what is stored without an owner, what starts, and what is deleted."""

import json
from collections import defaultdict
from typing import Any

from engine.sandbox import Sandbox
from engine.sandbox.store import Change
from tests.support.clusters import NAMESPACE


class Unowned:
    """`found` names what was stored without an owner, records aside."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.found: list[str] = []
        sandbox.context.storage.listen(self._look)

    def _look(self, change: Change) -> None:
        entry = change.entry
        if entry.kind.kind not in ("Secret", "ConfigMap") or change.type == "DELETED":
            return
        metadata = entry.obj["metadata"]
        if metadata.get("namespace") != NAMESPACE or metadata["name"].endswith(".record"):
            return
        if len(metadata.get("ownerReferences", ())) != 1:
            self.found.append(f"{entry.kind.kind}/{metadata['name']}")


class Deeds:
    """What was done to the pods of jobs, as the API server stored it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.starts: dict[str, list[str]] = defaultdict(list)
        """By job, names of the pods whose main container has started."""
        self.at_once: list[str] = []
        """Pods of one job whose main containers ran at the same time."""
        self.not_ours: list[str] = []
        """What was deleted although no record has its pod, and it may have run."""
        self._recorded: set[str] = set()
        self._started: set[str] = set()
        self._running: dict[str, dict[str, str]] = defaultdict(dict)
        sandbox.context.storage.listen(self._look)

    def _look(self, change: Change) -> None:
        kind, obj = change.entry.kind.kind, change.entry.obj
        name = obj["metadata"]["name"]
        if kind == "Pod":
            self._look_at_pod(change.type, obj)
        elif kind == "ConfigMap" and name.endswith(".record") and change.type != "DELETED":
            record = json.loads(obj["data"]["record.json"])
            for run in (record, *record.get("history", ())):
                self._recorded |= {one.get("uid", "") for one in run.get("attempts", ())}
        elif kind in ("Secret", "ConfigMap") and change.type == "DELETED":
            owners = obj["metadata"].get("ownerReferences", ())
            if not name.endswith(".record") and not owners:
                self.not_ours.append(f"{kind}/{name}")

    def _look_at_pod(self, what: str, pod: dict[str, Any]) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        running = self._running[name.rpartition("-")[0].rpartition("-")[0]]
        statuses = pod.get("status", {}).get("containerStatuses", ())
        main: dict[str, Any] = next((s["state"] for s in statuses if s["name"] == "main"), {})
        if {"running", "terminated"} & main.keys() and uid not in self._started:
            self._started.add(uid)
            self.starts[name.rpartition("-")[0].rpartition("-")[0]].append(name)
            if running:
                self.at_once.append(f"{name} beside {', '.join(running.values())}")
        if "running" in main:
            running[uid] = name
        if "terminated" in main or what == "DELETED":
            running.pop(uid, None)
        if what == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            gated = bool(pod["spec"].get("schedulingGates"))
            if uid not in self._recorded and not gated:
                self.not_ours.append(f"Pod/{name}")
