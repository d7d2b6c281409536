"""What outlived its TTL goes, and nothing else: metadata and the time in, a verdict out."""

from engine.decide.prune.rule import (
    counts_from_scheduling,
    evaluate,
    evaluate_record,
    unnamed_ttls,
)
from engine.decide.prune.verdict import (
    Delete,
    Deleting,
    Invalid,
    Keep,
    Protected,
    Verdict,
)

__all__ = [
    "Delete",
    "Deleting",
    "Invalid",
    "Keep",
    "Protected",
    "Verdict",
    "counts_from_scheduling",
    "evaluate",
    "evaluate_record",
    "unnamed_ttls",
]
