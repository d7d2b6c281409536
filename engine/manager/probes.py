"""What a probe may ask: whether the engine lives, and whether it keeps up."""

import time

from engine.manager.intake import Intake
from engine.reconcile.watches import Watches
from engine.runtime.leader_election import LeaderElector
from engine.runtime.supervisor import Supervisor

_STUCK_AFTER = 60.0


class Probes:
    """Quick answers, from any thread."""

    def __init__(
        self, watches: Watches, intake: Intake, elector: LeaderElector, supervisor: Supervisor
    ) -> None:
        self._watches = watches
        self._intake = intake
        self._elector = elector
        self._supervisor = supervisor
        self._beat = time.monotonic()

    def beat(self) -> None:
        """The main loop has turned once more."""
        self._beat = time.monotonic()

    def alive(self) -> str:
        """Why the process should be started again; "" while every thread of it works."""
        since = time.monotonic() - self._beat
        if since > _STUCK_AFTER:
            return f"the main loop has been stuck for {since:.0f} s"
        return self._supervisor.liveness()

    def checks(self) -> dict[str, str]:
        """What makes the engine ready, each with the reason why it isn't so, "" if it is."""
        failing = self._watches.failing
        names = self._watches.namespaces
        unsynced = sorted(name for name in names if not self._watches.has_synced(name))
        caches = f"not read yet: {', '.join(unsynced)}" if unsynced else ""
        known = self._elector.is_leader or self._elector.holder
        return {
            "caches": failing[0] if failing else caches,
            "directory": self._intake.unreadable,
            "leader": "" if known else "nobody is known to lead this source",
        }
