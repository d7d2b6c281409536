"""The life of an engine that stays: begin, keep up with specs and cluster, end in order.

One thread (the caller's) reads specs and minds the rest; workers give jobs their turns. Whatever
happens elsewhere arrives in an inbox, so signal handlers may put things there, too.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from queue import Empty, SimpleQueue

from engine.api.model import Config
from engine.cluster.client import Client
from engine.cluster.server import check_server_version
from engine.errors import EngineError
from engine.manager.crew import Crew
from engine.manager.intake import Intake
from engine.manager.jobs import Jobs
from engine.manager.options import ManagerOptions, Surroundings
from engine.manager.probes import Probes
from engine.manager.pruner import Pruner
from engine.manager.removals import Removals
from engine.manager.settings import Settings, SettingsMaker
from engine.manager.troubles import WatchTroubles
from engine.manager.turns import Turns
from engine.reconcile.watches import Listeners, Watches
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.leader_election import LeaderElector
from engine.runtime.lease_lock import LeaseLock
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.runtime.workqueue import WorkQueue
from engine.specdir.source import DirectorySource
from engine.telemetry.events import Notice, Ready, Stopping

_TICK, _SYNC_TICK = 1.0, 0.02
_LAST_STEP, _RELEASE = 5.0, 3.0
_SLOW_LOOK = 600.0


class _Call(Enum):
    CHANGED = "changed"
    RELOAD = "reload"
    STOP = "stop"
    END = "end"


class Manager:
    """Runs one source's jobs until it is stopped.

    Guarantees: a job's reconcile never runs twice at once; after `stop` nothing new is begun, what
    is half-way is brought to the next safe point, and the Lease is given up.
    """

    def __init__(
        self,
        client: Client,
        source: DirectorySource,
        config: Config,
        templates: Callable[[], Templates],
        options: ManagerOptions,
        around: Surroundings,
    ) -> None:
        self._client = client
        self._source = source
        self._config = config
        self._templates = templates
        self._options = options
        self._emit = around.emit
        self._inbox: SimpleQueue[_Call] = SimpleQueue()
        self._reason = ""
        self._may_be_cut_short = False
        self._failure: EngineError | None = None
        self._is_ready = False
        self._slow_look = time.monotonic() + _SLOW_LOOK
        self.jobs = Jobs()
        self.queue: WorkQueue[JobKey] = WorkQueue(around.on_wait)
        self._troubles = WatchTroubles(self._emit)
        self.watches = Watches(
            client,
            options.source,
            (),
            Listeners(self.queue.add, self.queue.add_after, self._troubles),
        )
        self.turns = Turns(
            client,
            options.source,
            self.jobs,
            self.watches,
            around.environment,
            around.redactor,
            self._emit,
            lambda: self._settings,
        )
        self._removals = Removals(
            client,
            options.source,
            self.jobs,
            self.watches,
            options.prune_interval,
            lambda: self._config,
            self._emit,
        )
        self._pruner = Pruner(
            client,
            self.watches,
            options.prune_interval,
            options.concurrency,
            lambda: self.elector.is_leader,
            lambda: self._config,
            self._emit,
        )
        self.elector = LeaderElector(
            LeaseLock(
                client, options.namespace, options.source, options.identity, options.lease_duration
            ),
            wait=options.waits,
            emit=self._emit,
            on_change=self._leads,
        )
        self.supervisor = Supervisor(self._emit)
        self._election: SupervisedThread | None = None
        self._election_stopped = threading.Event()
        self.intake = Intake(
            source,
            config,
            options,
            self.jobs,
            self.watches,
            self.queue,
            self.turns,
            self._removals,
            self._set_up,
            self._emit,
        )
        self.probes = Probes(self.watches, self.intake, self.elector, self.supervisor)
        self._maker = SettingsMaker(client, self.watches, options.source, around, {})
        self._settings: Settings
        removals = self._removals if options.prune else None
        count = options.concurrency
        self._crew = Crew(self.queue, self.turns, removals, count, around.on_turn, self.supervisor)

    def run(self) -> None:
        """Returns once `stop` was called.

        Errors: ClusterError when the cluster is too old or can't be reached at the start,
        LeaseHeldError when another engine leads this source; later ones are told, and it goes on.
        """
        self.queue.pause()
        try:
            with self._cut_short():
                retry_transient(lambda: check_server_version(self._client), self._troubles)
            self._election = self.supervisor.start("leader election", self._elect)
            if self._options.waits or self._wait_for_the_lead():
                self._begin()
                while self._listen():
                    self._mind()
        except KeyboardInterrupt:
            if not self._reason:
                raise
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure

    def stop(self, reason: str) -> None:
        """To be called from a signal handler, in the thread that runs this.

        Errors: KeyboardInterrupt where `run` does something long that may be cut short; it then
        ends in order, too.
        """
        self._reason = reason
        self._inbox.put(_Call.STOP)
        if self._may_be_cut_short:
            raise KeyboardInterrupt

    def reload(self) -> None:
        """Read configuration, templates and every spec again. May be called as `stop` may."""
        self._inbox.put(_Call.RELOAD)

    @contextmanager
    def _cut_short(self) -> Iterator[None]:
        self._may_be_cut_short = True
        try:
            yield
        finally:
            self._may_be_cut_short = False

    def _read(self) -> None:
        with self._cut_short():
            self.intake.read()

    def _wait_for_the_lead(self) -> bool:
        """Whether it came; False when the engine is to end before it began."""
        while not self.elector.is_leader:
            self.probes.beat()
            try:
                if self._inbox.get(timeout=_SYNC_TICK) in (_Call.STOP, _Call.END):
                    return False
            except Empty:
                continue
        return True

    def _begin(self) -> None:
        self._set_up(self._config)
        self._source.start(lambda: self._inbox.put(_Call.CHANGED))
        self._read()
        if self._options.prune:
            with self._cut_short():
                self.intake.follow_what_is_left(self._client, self._troubles)
        self._crew.start()
        self._pruner.start()

    def _set_up(self, config: Config) -> None:
        """Put `config` in force; what was prepared under another one is prepared anew."""
        self._config = config
        self._settings = self._maker.make(config, self._templates())
        self.jobs.forget_preparations()

    def _listen(self) -> bool:
        """Wait for a call, answer it; False when it is time to end."""
        calls = set()
        try:
            waits = self.intake.is_waiting or not self._is_ready
            hurries = waits and not self.watches.failing
            calls.add(self._inbox.get(timeout=_SYNC_TICK if hurries else _TICK))
            while True:
                calls.add(self._inbox.get_nowait())
        except Empty:
            pass
        if calls & {_Call.STOP, _Call.END}:
            return False
        if _Call.RELOAD in calls:
            self._emit(Notice("reading configuration, templates and specs again"))
            self._source.reload()
            self._set_up(self._config)
        if calls:
            self._read()
        return True

    def _mind(self) -> None:
        """What is to be seen to from time to time."""
        self.probes.beat()
        self.intake.queue_synced()
        if not self._is_ready and not self.intake.is_waiting:
            self._is_ready = True
            self._emit(Ready())
        if not self.watches.failing:
            self._troubles.all_is_well()
        if self._options.prune:
            for key in self._removals.due():
                self.queue.add(key)
        if time.monotonic() > self._slow_look:
            self._slow_look = time.monotonic() + _SLOW_LOOK
            self.intake.queue_all()

    def _leads(self, leads: bool) -> None:
        if leads:
            self.queue.resume()
        else:
            self.queue.pause()

    def _elect(self, thread: SupervisedThread) -> None:
        try:
            self.elector.run(self._election_stopped, thread.expect)
        except EngineError as error:
            self._failure = error
            self._inbox.put(_Call.END)

    def _end(self) -> None:
        self._emit(Stopping(self._reason or str(self._failure or "an error")))
        self._pruner.stop()
        self._source.stop()
        self._crew.stop(_LAST_STEP)
        self.watches.stop()
        self._election_stopped.set()
        if self._election is not None:
            self._election.join(_RELEASE)
