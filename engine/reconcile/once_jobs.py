"""What `reconcile --once` and its dry run begin with: all is read and checked, nothing written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.cluster.records import RecordList
from engine.cluster.server import check_server_version
from engine.decide.record import Record
from engine.informers.factory import InformerFactory
from engine.prune.after_reconcile import Reconciled, prune_after_reconcile
from engine.prune.options import DryRun
from engine.prune.removed import find_gone
from engine.prune.result import OnEntry, PruneReport
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.job_state import JobState
from engine.reconcile.once_result import OnceOptions
from engine.reconcile.preflight import preflight
from engine.reconcile.rendering import RenderConfig
from engine.reconcile.start_brake import new_run, start_limit
from engine.reconcile.watch_errors import WatchErrorReporter
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient


@dataclass(frozen=True, slots=True)
class OnceRequest:
    """Which jobs are to be reconciled, where, and how."""

    client: Client
    jobs: Sequence[Job]
    config: Config
    options: OnceOptions
    templates: Templates
    is_whole: bool = False
    """Whether the source has no other jobs for certain: only then can a spec be missed."""


class OnceJobs:
    """The jobs of one request, and what the cluster has of them."""

    def __init__(
        self,
        request: OnceRequest,
        dependencies: ControllerDependencies,
        informers: InformerFactory,
        render_config: RenderConfig,
        on_error: WatchErrorReporter,
    ) -> None:
        self.by_key = {job.key: job for job in request.jobs}
        self.gone: RecordList | None = None
        """Records of the jobs that are to be removed afterwards; None where none is."""
        self._request = request
        self._dependencies = dependencies
        self._informers = informers
        self._render_config = render_config
        self._on_error = on_error
        self._namespaces = sorted({key.namespace for key in self.by_key})

    def list(self, timeout: float | None = None) -> None:
        """Read all records and pods of their namespaces, within `timeout` seconds.

        Errors: ClusterError when the cluster is too old, or can't be reached or read.
        """
        retry_transient(self._list, self._on_error, timeout=timeout)

    def pods_of(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        """The pods of a job, as last seen."""
        return self._informers.pods(key.namespace).items(key)

    def preflight(self, states: Iterable[JobState]) -> Sequence[JobState]:
        """Those whose run isn't over, once nothing is wrong with them.

        Errors: InvalidInputError with every problem.
        """
        request = self._request
        source, dependencies = request.options.source, self._dependencies
        unfinished = [state for state in states if not state.is_finished(source)]
        keys = (
            state.job.key for state in unfinished if state.is_started(self.pods_of(state.job.key))
        )
        environment, redactor = dependencies.environment, dependencies.redactor
        preflight(request.client, unfinished, set(keys), self._render_config, environment, redactor)
        return unfinished

    def require_few_starts(self, unfinished: Iterable[JobState]) -> None:
        """Errors: UsageError where more runs would begin than may."""
        limit = start_limit(self._request.options.max_starts, self._request.config.limits)
        if limit.most is None:
            return
        found = {s.job.key: new_run(s.job, s.record, self.pods_of(s.job.key)) for s in unfinished}
        limit.require({key: why for key, why in found.items() if why is not None})

    def find_gone(self) -> None:
        """Find the jobs without a spec, if they are to be removed. Errors: those of the list."""
        client, options = self._request.client, self._request.options
        if options.prune_in is not None:
            self.gone = find_gone(client, options.source, self.by_key.keys(), options.prune_in)

    def prune(
        self,
        *,
        logs_dir: Path | None = None,
        dry_run: DryRun = DryRun.NONE,
        changed: Mapping[str, dict[str, Any]] | None = None,
        on_entry: OnEntry = lambda _entry: None,
    ) -> PruneReport:
        """Prune once the jobs are reconciled: pods as last seen, records as first seen.

        `changed` are pods, by UID, as a dry run takes them to be. `on_entry` is called for each
        object as soon as it is settled.
        """
        informers, names, request = self._informers, self._namespaces, self._request
        listed = (pod for name in names for pod in informers.pods(name).all_items())
        pods = [(changed or {}).get(pod["metadata"]["uid"], pod) for pod in listed]
        records: list[Record] = []
        for name in names:
            records += informers.records(name).all_records()
        source = request.options.source
        return prune_after_reconcile(
            request.client,
            request.config,
            Reconciled(source, frozenset(self.by_key), request.is_whole, pods, records),
            self.gone,
            concurrency=request.options.concurrency,
            logs_dir=logs_dir,
            dry_run=dry_run,
            on_entry=on_entry,
        )

    def _list(self) -> None:
        check_server_version(self._request.client)
        self._informers.list_all(self._namespaces)
