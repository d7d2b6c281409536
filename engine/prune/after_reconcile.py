"""What a reconcile prunes once its jobs are settled: expired pods, and jobs without a spec."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.api.model import Config
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.prune.own import own_options, prune_own
from engine.prune.prune_pass import PrunePass
from engine.prune.removed import Removal, remove_gone
from engine.prune.result import PruneAction, PruneEntry, PruneResult, Why
from engine.refs import JobKey


@dataclass(frozen=True, slots=True)
class AfterReconcile:
    """`removes` says whether jobs whose spec is gone are removed."""

    client: Client
    config: Config
    source: str
    concurrency: int
    removes: bool

    def run(
        self, pods: Iterable[dict[str, Any]], living: frozenset[JobKey], namespaces: Iterable[str]
    ) -> PrunePass:
        """`pods` are those of the source, as last seen; `living` the jobs that have a spec."""
        entries: list[PruneEntry] = []
        most = self.config.limits.max_deletes_per_pass
        removed = PruneResult()
        if self.removes:
            removal = Removal(self.source, tuple(namespaces), most, self.concurrency)
            removed = remove_gone(self.client, removal, living, entries.append)
            if most is not None:
                most -= min(most, removed.actions.get(PruneAction.DELETED, 0))
        options = own_options(self.config, self.concurrency, most)
        expired = prune_own(self.client, pods, options, entries.append)
        return PrunePass(tuple(entries), (*_errors(removed), *expired.errors))


def _errors(removed: PruneResult) -> tuple[EngineError, ...]:
    errors = list(removed.errors)
    failed = removed.actions.get(PruneAction.FAILED, 0)
    if failed:
        errors.append(EngineError(f"{failed} of the removed specs' objects could not be deleted"))
    braked = removed.kept.get(Why.BRAKED, 0)
    if braked:
        words = "limits.maxDeletesPerPass is reached"
        errors.append(EngineError(words, hint=f"{braked} more would go"))
    return tuple(errors)
