"""The directory source of watch mode: which jobs the spec files say are in force now."""

from engine.controller.source.snapshot import Snapshot
from engine.controller.source.source import DirectorySource

__all__ = ["DirectorySource", "Snapshot"]
