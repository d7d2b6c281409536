"""The embedded cluster for demos and tests: a Kubernetes API over loopback HTTP, and its node.

It runs no container and says so. ``docs/sandbox.md`` lists what it does and what it leaves out.
"""

from engine.sandbox.clock import Clock
from engine.sandbox.errors import SandboxError
from engine.sandbox.faults import (
    Conflict,
    DropConnection,
    DropWatch,
    ExpireWatch,
    Fault,
    Latency,
    LostReply,
    Refuse,
    ServerError,
    TooManyRequests,
)
from engine.sandbox.sandbox import Sandbox
from engine.sandbox.scenario import FOREVER, Run, Scenario, load_scenario, parse_scenario

__all__ = [
    "FOREVER",
    "Clock",
    "Conflict",
    "DropConnection",
    "DropWatch",
    "ExpireWatch",
    "Fault",
    "Latency",
    "LostReply",
    "Refuse",
    "Run",
    "Sandbox",
    "SandboxError",
    "Scenario",
    "ServerError",
    "TooManyRequests",
    "load_scenario",
    "parse_scenario",
]
