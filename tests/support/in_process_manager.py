"""An engine that stays in the test's own process: many of them take no time to start."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from engine.api.model import Config
from engine.cluster.client import ServerClock
from engine.cluster.connect import connect
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.controller_manager import ControllerManager
from engine.reconcile.options import RunOptions
from engine.render.templates import Templates
from engine.specdir.source import DirectorySource
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor
from tests.support.clusters import NAMESPACE


class InProcessManager:
    """A manager of the specs in `folder` that runs until the block ends; None: of objects.

    The clock of its machine is `skew` ahead.
    """

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path | None,
        *,
        lease_duration: float = 3.0,
        shares: bool = False,
        skew: timedelta = timedelta(),
    ) -> None:
        self.events: list[Event] = []
        self.failure: BaseException | None = None
        options = RunOptions(
            paths=(str(folder),) if folder is not None else (),
            from_cluster=folder is None,
            source="campaign",
            namespace=NAMESPACE,
            concurrency=4,
            prune=folder is not None,
            lease_duration=lease_duration,
            leader_elect=shares,
        )
        source = DirectorySource(options, Config(), lambda _message: None)
        dependencies = ControllerDependencies({}, Redactor(), self.events.append)
        client = connect(str(kubeconfig), connections=64).client
        client._clock = ServerClock(lambda: datetime.now(UTC) + skew)
        self.manager = ControllerManager(client, source, Config(), Templates, options, dependencies)
        self._thread = threading.Thread(target=self._run, name="running", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.manager.stop("the test is over")
        self._thread.join(60)

    def owns(self, job: str) -> bool:
        """Whether the job is this engine's among those that share the source."""
        return self.manager.membership.owns(f"{NAMESPACE}/{job}")

    @property
    def lives(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.manager.run()
        except BaseException as error:  # noqa: BLE001 - told by whoever judges
            self.failure = error
