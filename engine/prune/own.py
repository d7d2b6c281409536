"""The TTL rule over what one source made: the end of a reconcile, from what it has read already."""

from collections.abc import Iterable
from typing import Any

from engine.api.model import Config
from engine.cluster.api import PODS
from engine.cluster.client import Client
from engine.decide.prune import Delete, Invalid, judge
from engine.prune.last_failed import youngest
from engine.prune.options import PruneOptions
from engine.prune.result import PruneAction, PruneEntry, PruneResult, Tell
from engine.prune.run import PruneRun
from engine.prune.target import Target

_STAYS = (PruneAction.KEPT, PruneAction.PROTECTED)


def own_options(config: Config, concurrency: int, most: int | None) -> PruneOptions:
    """What the operator's settings come to for a source's own pods; at most `most` deletes."""
    return PruneOptions(
        concurrency=concurrency,
        max_deletes=most,
        keep_failed=config.prune.keep_failed,
        events=PruneOptions().events if config.features.events else 0,
    )


def prune_own(
    client: Client, pods: Iterable[dict[str, Any]], options: PruneOptions, tell: Tell
) -> PruneResult:
    """Delete the expired ones of `pods`; `tell` hears of all that doesn't simply stay.

    Guarantees: no request where nothing has expired. What the pods own goes with them.
    """
    listed = [(pod["metadata"], (pod.get("status") or {}).get("phase")) for pod in pods]
    failed = youngest((m for m, phase in listed if phase == "Failed"), options.keep_failed)
    now = client.now()
    targets = [
        Target(PODS, metadata)
        for metadata, _ in listed
        if isinstance(judge(metadata, now, options.annotations), Delete | Invalid)
    ]

    def tell_changes(entry: PruneEntry) -> None:
        if entry.action not in _STAYS:
            tell(entry)

    if not targets:
        return PruneResult()
    return PruneRun(client, options, tell_changes).run_over(targets, failed)
