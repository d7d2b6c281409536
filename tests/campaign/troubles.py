"""What others do to the real cluster from one life of the engine to the next, by lot."""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self

from tests.campaign.batches import ENDED
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.quota import set_quota
from tests.support.engine import Engine
from tests.support.gates import is_held, let_go
from tests.support.job_specs import STATUS
from tests.support.objects import Objects
from tests.support.refusals import RBAC, bind_rights, rights_without
from tests.support.troubles import QUOTA, QUOTED, being_written, right_by_lot
from tests.support.webhook import gating_webhook, refusing_webhook

LONGEST_OUTAGE = 90.0
"""Seconds. Below what a pod tolerates unless its spec says otherwise."""


class Troubles:
    """A namespace that is full for a while, rights that are taken away, records that a webhook
    refuses, gates that another one adds, and a second node whose kubelet is killed. JobSpec objects
    are written by others, and it is their status that is refused.

    `change` has some of them come and go; where the block ends, all are over.
    """

    def __init__(
        self,
        engine: Engine,
        objects: Objects,
        cluster: Cluster,
        second: Node,
        chance: random.Random,
        folder: Path,
    ) -> None:
        self._objects = objects
        self._api = objects.api
        self._namespace = objects.namespace
        self._second = second
        self._chance = chance
        self._folder = folder
        self._of_objects = engine.objects
        self._passing = ExitStack()
        self._lost_since = 0.0
        self._lives = 0
        self.log: list[str] = []
        engine.kubeconfig = cluster.kubeconfig_for(bind_rights(self._api, self._namespace))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.end()

    def change(self) -> None:
        """Between two lives: what was is over, and something else may be."""
        self._passing.close()
        self._lift_gates()
        self._change_node()
        for chance, trouble in ((0.3, self._fill), (0.2, self._forbid), (0.2, self._webhook)):
            if self._chance.random() < chance:
                trouble()
        if self._of_objects and self._chance.random() < _WRITTEN_RATE:
            self._passing.enter_context(being_written(self._api, self._namespace))
            self.log.append("objects written")

    def end(self) -> None:
        """All is over: whoever was refused is let in, and every pod that is to go has gone."""
        self._passing.close()
        self._lift_gates()
        if not self._second.kubelet.alive():
            self._second.kubelet.start()
        self._api.wait(lambda: not self._going(), "end of the pods that are to go", timeout=180)

    def _fill(self) -> None:
        resource, room = self._chance.choice(QUOTED), self._chance.randint(0, 3)
        there = self._api.list(resource, self._namespace)
        used = sum(item.get("status", {}).get("phase") not in ENDED for item in there)
        set_quota(self._api, self._namespace, {resource: used + room}, name=QUOTA)
        self._passing.callback(self._api.delete, "resourcequotas", QUOTA, self._namespace)
        self.log.append(f"full of {resource}")

    def _forbid(self) -> None:
        verb, resource = right_by_lot(self._chance, objects=self._of_objects)
        self._allow_all_but(verb, resource)
        self._passing.callback(self._allow_all_but, "", "")
        self.log.append(f"no right to {verb} {resource}")

    def _allow_all_but(self, verb: str, resource: str) -> None:
        rules = {"rules": [*rights_without(verb, resource)]}
        self._api.patch(f"{RBAC}/v1/roles", "engine", rules, self._namespace)

    def _webhook(self) -> None:
        """One at a time: under two of them it can't be seen that one is gone."""
        kinds: tuple[tuple[str, Callable[[], AbstractContextManager[None]]], ...] = (
            ("no record admitted", self._refuses_records),
            ("gates added", lambda: gating_webhook(self._api, self._namespace, self._folder)),
        )
        name, webhook = self._chance.choice(kinds)
        self._passing.enter_context(webhook())
        self.log.append(name)

    def _refuses_records(self) -> AbstractContextManager[None]:
        records = (STATUS, "") if self._of_objects else ("configmaps", ".record")
        return refusing_webhook(self._api, self._namespace, *records, self._folder)

    def _lift_gates(self) -> None:
        for pod in filter(is_held, self._objects.pods()):
            let_go(self._api, pod)

    def _change_node(self) -> None:
        """It is lost for some lives, often until the cluster has noticed."""
        kubelet = self._second.kubelet
        if kubelet.alive():
            if self._chance.random() < _LOST_RATE:
                kubelet.kill()
                self._lost_since = time.monotonic()
                self._lives = self._chance.randint(1, 8)
                self.log.append("a lost node")
            return
        self._lives -= 1
        gone_for = time.monotonic() - self._lost_since
        if gone_for > LONGEST_OUTAGE or (self._lives <= 0 and self._chance.random() < _BACK_RATE):
            kubelet.start()

    def _going(self) -> list[str]:
        pods = self._objects.pods()
        return [p["metadata"]["name"] for p in pods if "deletionTimestamp" in p["metadata"]]


_LOST_RATE, _BACK_RATE, _WRITTEN_RATE = 0.15, 0.4, 0.3
