"""The three patch formats that change an object without owning its fields."""

from engine.sandbox.patch.json_patch import json_patch
from engine.sandbox.patch.merge_patch import merge_patch
from engine.sandbox.patch.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "strategic_merge"]
