"""What strangers can hand to the engine, made up at random: nothing of it may make it stumble.

A fuzzer plays examples until its time is spent, and the same ones every time: a run's random
numbers are those of `ENGINE_FUZZ_SEED`, and of how many it has played.
"""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

_EXAMPLES = 25

Value = TypeVar("Value")


def budget() -> float:
    """Seconds for which each fuzzer plays: ENGINE_FUZZ_SECONDS, else 10."""
    return float(os.environ.get("ENGINE_FUZZ_SECONDS", "10"))


def play(strategy: SearchStrategy[Value], check: Callable[[Value], None]) -> None:
    """`check` on examples of `strategy` until the budget is spent.

    Errors: what `check` raises, with the smallest example that makes it raise.
    """
    end = time.monotonic() + budget()
    number = int(os.environ.get("ENGINE_FUZZ_SEED", "0"))
    while time.monotonic() < end:

        @seed(number)
        @settings(
            max_examples=_EXAMPLES,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def examples(value: Value) -> None:
            check(value)

        examples()
        number += 1
