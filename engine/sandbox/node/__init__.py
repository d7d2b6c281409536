"""The simulated node: it schedules, "pulls" and "runs" pods, and says that it runs nothing."""

from engine.sandbox.node.images import Images
from engine.sandbox.node.node import Node

__all__ = ["Images", "Node"]
