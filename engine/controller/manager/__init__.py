"""The engine that stays: specs come and go, jobs run, and nothing is left behind."""

from engine.controller.manager.manager import Manager
from engine.controller.manager.options import ManagerOptions, Surroundings

__all__ = ["Manager", "ManagerOptions", "Surroundings"]
