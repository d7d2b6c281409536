"""What a reconcile prunes once its jobs are finished: jobs without a spec, and expired pods."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.api.model import Config
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.prune.elsewhere import pods_elsewhere
from engine.prune.options import ttl_options
from engine.prune.removed import remove_gone
from engine.prune.result import (
    KeepReason,
    PruneAction,
    PruneEntry,
    PruneReport,
    PruneResult,
)
from engine.prune.run import prune
from engine.refs import JobKey


def prune_after_reconcile(
    client: Client,
    config: Config,
    source: str,
    pods: Iterable[dict[str, Any]],
    living: frozenset[JobKey],
    namespaces: Iterable[str],
    *,
    concurrency: int,
    remove_jobs: bool,
    logs_dir: Path | None = None,
) -> PruneReport:
    """`pods` are those of the source, as last seen; `living` the jobs that have a spec.

    Its pods in namespaces that no spec names any more are looked for where the engine may.
    `remove_jobs` says whether those without one are removed; their records are looked for in
    `namespaces` if the engine may not look everywhere. Logs are saved below `logs_dir` first.
    """
    entries: list[PruneEntry] = []
    most = config.limits.max_deletes_per_pass
    removed = PruneResult()
    if remove_jobs:
        removed = remove_gone(
            client, source, living, namespaces, entries.append,
            max_deletes=most, concurrency=concurrency, logs_dir=logs_dir,
        )  # fmt: skip
        if most is not None:
            most -= min(most, removed.actions.get(PruneAction.DELETED, 0))
    warnings = []
    try:
        elsewhere = pods_elsewhere(client, source, {key.namespace for key in living})
    except EngineError as error:
        elsewhere = []
        warnings.append(f"pruning in namespaces that no spec names: {error}")
    options = ttl_options(config, concurrency, most, logs_dir)
    expired = prune(client, options, entries.append, (*pods, *elsewhere))
    left = sum(result.kept.get(KeepReason.OVER_BUDGET, 0) for result in (removed, expired))
    if left:
        warnings.append(f"limits.maxDeletesPerPass is reached, {left} more would go")
    errors = (*_errors(removed), *expired.errors)
    return PruneReport(tuple(entries), tuple(warnings), errors)


def _errors(removed: PruneResult) -> tuple[EngineError, ...]:
    failed = removed.actions.get(PruneAction.FAILED, 0)
    if not failed:
        return removed.errors
    words = f"{failed} of the removed specs' objects could not be deleted"
    return (*removed.errors, EngineError(words))
