"""Prune: what outlived its TTL goes. `engine prune` and `engine reconcile` both end up here."""

from engine.controller.prune.options import DryRun, PruneOptions
from engine.controller.prune.result import PruneAction, PruneEntry, PruneResult, Tell
from engine.controller.prune.run import prune

__all__ = [
    "DryRun",
    "PruneAction",
    "PruneEntry",
    "PruneOptions",
    "PruneResult",
    "Tell",
    "prune",
]
