"""The directory source of watch mode: which jobs the spec files say are in force now."""

from engine.specdir.snapshot import Snapshot
from engine.specdir.source import DirectorySource

__all__ = ["DirectorySource", "Snapshot"]
