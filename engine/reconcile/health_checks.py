"""What a probe may ask: whether the engine lives, and whether it keeps up."""

from engine.reconcile.controller import JobController
from engine.reconcile.spec_sync import SpecSync
from engine.runtime.leader_election import LeaderElector


class HealthChecks:
    """Quick answers, from any thread."""

    def __init__(self, controller: JobController, specs: SpecSync, elector: LeaderElector) -> None:
        self._controller = controller
        self._specs = specs
        self._elector = elector

    def liveness(self) -> str:
        """Why the process should be started again; "" while every thread of it works."""
        return self._controller.supervisor.liveness()

    def readiness(self) -> dict[str, str]:
        """What makes the engine ready, each with the reason why it isn't so, "" if it is."""
        failing, informers = self._controller.failing, self._controller.informers
        unsynced = sorted(name for name in informers.namespaces if not informers.has_synced(name))
        caches = f"not read yet: {', '.join(unsynced)}" if unsynced else ""
        known = self._elector.is_leader or self._elector.holder
        return {
            "caches": failing[0] if failing else caches,
            "directory": self._specs.unreadable,
            "leader": "" if known else "nobody is known to lead this source",
        }
