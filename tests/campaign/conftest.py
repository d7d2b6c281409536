"""Campaigns: the engine is killed, the API server restarted, and every job runs exactly once."""

from tests.e2e.conftest import engine, objects

__all__ = ["engine", "objects"]
