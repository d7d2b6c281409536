"""The shapes of what goes over the wire."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON value, not yet looked at."""

Obj: TypeAlias = dict[str, Any]
"""A JSON object: a manifest, or a part of one."""
