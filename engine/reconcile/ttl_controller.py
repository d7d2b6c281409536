"""The TTL rule of an engine that stays: over its pods and records, from what it has read already.

Where its source has any and no spec any more nothing is watched: those are read once, and again
when one of them has expired.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.api.model import Config
from engine.cluster.access import may_list
from engine.cluster.api import CONFIG_MAPS, PODS
from engine.decide.prune.rule import Delete, evaluate, evaluate_record
from engine.decide.record import Record
from engine.errors import EngineError
from engine.prune.elsewhere import pods_elsewhere, records_elsewhere
from engine.prune.mark_gone import MOST_MARKS, due_marks, write_marks
from engine.prune.options import ttl_options
from engine.prune.result import PruneEntry
from engine.prune.run import prune
from engine.reconcile.controller import JobController
from engine.reconcile.spec_sync import SpecSync
from engine.runtime.leader_election import LeaderElector
from engine.telemetry.events import ErrorReported, ObjectPruned

_STALL_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The source's pods and records where nothing is watched, as last read."""

    pods: list[dict[str, Any]]
    records: list[Record]

    def has_expired(self, now: datetime, config: Config) -> bool:
        """Whether anything of it should go."""
        ttl = config.records.ttl
        verdicts = [evaluate(pod["metadata"], now) for pod in self.pods]
        marks = ({"annotations": record.annotations} for record in self.records)
        verdicts += [evaluate_record(metadata, now, ttl) for metadata in marks]
        return any(isinstance(verdict, Delete) for verdict in verdicts)


class TtlController:
    """One pass every `interval` seconds, whenever this engine leads.

    With `specs`, which say which are gone, their records age; without, such jobs are removed.
    Guarantees: after the first pass no request while nothing has expired. Errors: none of the
    cluster's; they are reported.
    """

    name = "TTL controller"
    grace = 0.0

    def __init__(
        self,
        controller: JobController,
        elector: LeaderElector,
        specs: SpecSync | None,
        interval: float,
        concurrency: int,
        logs_dir: Path | None = None,
    ) -> None:
        self._controller = controller
        self._elector = elector
        self._specs = specs
        self._interval = interval
        self._concurrency = concurrency
        self._logs_dir = logs_dir
        self._elsewhere: _Elsewhere | None = None
        self._tried: set[str] = set()
        """Versions of records that were to be marked: one that can't be is not tried again."""

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Prune until `stop` is set; a pass that is half-way then ends by itself."""
        while not stop.wait(self._interval):
            heartbeat(_STALL_TIMEOUT + self._interval)
            if self._elector.is_leader:
                self._prune()

    def _prune(self) -> None:
        controller = self._controller
        config, informers = controller.config, controller.informers
        most = config.limits.max_deletes_per_pass
        options = ttl_options(config, self._concurrency, most, self._logs_dir)
        pods = [pod for name in informers.namespaces for pod in informers.pods(name).all_items()]
        try:
            elsewhere = self._read_elsewhere(set(informers.namespaces))
            pods += elsewhere.pods
            gone = list(self._records_of_gone(elsewhere))
            marking = [f"marking: {error}" for error in self._mark(gone)]
            result = prune(controller.client, options, self._report, pods, gone)
            problems = (*marking, *result.errors, *result.warnings)
        except EngineError as raised:
            problems = (raised,)
        for problem in problems:
            controller.emit(ErrorReported(None, f"pruning: {problem}", retrying=True))

    def _read_elsewhere(self, watched: set[str]) -> _Elsewhere:
        controller, known = self._controller, self._elsewhere
        client, source = controller.client, controller.source
        if known is None or known.has_expired(client.now(), controller.config):
            age = self._specs is not None and may_list(client, CONFIG_MAPS)
            records = records_elsewhere(client, source, watched) if age else []
            expire = may_list(client, PODS)
            pods = pods_elsewhere(client, source, watched) if expire else []
            known = self._elsewhere = _Elsewhere(pods, records)
        return _Elsewhere(
            [pod for pod in known.pods if pod["metadata"]["namespace"] not in watched],
            [record for record in known.records if record.key.namespace not in watched],
        )

    def _records_of_gone(self, elsewhere: _Elsewhere) -> Iterator[Record]:
        """None as long as a spec may be there that can't be read."""
        if self._specs is None or self._specs.incomplete:
            return
        controller = self._controller
        for record in (*controller.informers.own_records(), *elsewhere.records):
            if record.key not in controller.store:
                yield record

    def _mark(self, gone: list[Record]) -> tuple[EngineError, ...]:
        due = due_marks(gone, self._controller.client.now())
        fresh = [record for record in due if record.version not in self._tried][:MOST_MARKS]
        self._tried &= {record.version for record in due}
        self._tried |= {record.version for record in fresh}
        if self._elsewhere is not None:
            marked = {record.key: record for record in fresh}
            records = [marked.get(record.key, record) for record in self._elsewhere.records]
            self._elsewhere = replace(self._elsewhere, records=records)
        return write_marks(self._controller.client, fresh, self._concurrency)

    def _report(self, entry: PruneEntry) -> None:
        self._controller.emit(ObjectPruned(entry.ref, entry.action, entry.reason))
