"""The health that Argo CD shows of an object, by the script that is installed into it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.helm import CHART

FILE = CHART.parent / "argocd" / "health.lua"
SCRIPT = FILE.read_text(encoding="utf-8")


def health_of(obj: dict[str, Any]) -> tuple[str, str]:
    """Status and message, by Lua 5.1, which Argo CD's own Lua implements."""
    lua = pytest.importorskip("lupa.lua51").LuaRuntime()
    lua.globals().obj = lua.table_from(obj, recursive=True)
    made = lua.execute(SCRIPT)
    return made["status"], made["message"]
