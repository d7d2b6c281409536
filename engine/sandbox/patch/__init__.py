"""The patch formats that know nothing of types, and change an object without owning its fields."""

from engine.sandbox.patch.json_patch import json_patch
from engine.sandbox.patch.merge_patch import merge_patch

__all__ = ["json_patch", "merge_patch"]
