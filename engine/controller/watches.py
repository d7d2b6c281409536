"""All that a reconciler hears of the cluster: pods, what they own, and quotas, by namespace."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.cluster.client import Client
from engine.controller.drift_watch import DriftWatch
from engine.controller.informer import PodInformer
from engine.controller.quota_line import QuotaLine
from engine.labels import MANAGED_BY, MANAGER, SOURCE
from engine.refs import JobKey


@dataclass(frozen=True, slots=True)
class Listeners:
    """`changed` gets the job whose pod changed, `called` the one whose turn it is to ask a quota
    again, `touched` a job and the UID of its pod whose belongings somebody changed.
    """

    changed: Callable[[JobKey], None]
    called: Callable[[JobKey], None]
    touched: Callable[[JobKey, str], None]
    trouble: Callable[[str], None]


class Watches:
    """Informers and watches of one source in some namespaces.

    Guarantees: nothing is watched before `start`, and every thread ends with `stop`.
    Errors: `sync` raises what the lists raise.
    """

    def __init__(
        self, client: Client, source: str, namespaces: Iterable[str], listeners: Listeners
    ) -> None:
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={source}"
        self.line = QuotaLine(client, listeners.called, listeners.trouble)
        self._pods = {
            namespace: PodInformer(
                client, namespace, selector, listeners.changed, listeners.trouble
            )
            for namespace in namespaces
        }
        self._drift = {
            namespace: DriftWatch(client, namespace, selector, listeners.touched, listeners.trouble)
            for namespace in self._pods
        }

    def pods(self, namespace: str) -> PodInformer:
        return self._pods[namespace]

    def sync(self) -> None:
        """Read all pods, namespace by namespace."""
        for informer in self._pods.values():
            informer.sync()

    def start(self, owning: Iterable[str]) -> None:
        """Watch pods everywhere, and in the namespaces `owning` what the pods own."""
        for informer in self._pods.values():
            informer.start()
        for namespace in owning:
            self._drift[namespace].start()

    def stop(self) -> None:
        self.line.stop()
        for informer in self._pods.values():
            informer.stop()
        for watch in self._drift.values():
            watch.stop()
