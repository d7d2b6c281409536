"""The engine that stays: specs come and go, jobs run, and nothing is left behind."""

from engine.manager.manager import Manager
from engine.manager.options import ManagerOptions, Surroundings

__all__ = ["Manager", "ManagerOptions", "Surroundings"]
