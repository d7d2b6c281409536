"""What strangers can hand to the engine, made up at random: nothing of it may make it stumble.

A fuzzer plays examples until its time is spent, and the same ones every time: a run's random
numbers are those of `ENGINE_FUZZ_SEED`, and of how many it has played. In `make soak` an example
may take no more than its time and memory, too; the tests of every day have no machine of their own.
"""

import os
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

_EXAMPLES = 25
_SOAK = 60.0
"""From so many seconds on a fuzzer holds each example to its limits."""
_MOST_SECONDS = 2.0
"""Of the processor, so that whoever else is at work on this machine doesn't count."""
_MOST_MIB = 200

Value = TypeVar("Value")


def budget() -> float:
    """Seconds for which each fuzzer plays: ENGINE_FUZZ_SECONDS, else 3."""
    return float(os.environ.get("ENGINE_FUZZ_SECONDS", "3"))


def play(
    strategy: SearchStrategy[Value], check: Callable[[Value], None], *, times: int = 1
) -> None:
    """`check` on examples of `strategy` until the budget is spent.

    `times` is how often a check does what the limit of time is about.

    Errors: what `check` raises, with the smallest example that makes it raise.
    """
    end = time.monotonic() + budget()
    check = _within_limits(check, _MOST_SECONDS * times) if budget() >= _SOAK else check
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


def _within_limits(check: Callable[[Value], None], seconds: float) -> Callable[[Value], None]:
    """Errors: AssertionError for an example that takes too long, or more memory than any before."""

    def limited(value: Value) -> None:
        begun, before = time.process_time(), _peak_mib()
        check(value)
        took, more = time.process_time() - begun, _peak_mib() - before
        assert took < seconds, f"{took:.1f} s"
        assert more < _MOST_MIB, f"{more} MiB more"

    return limited


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
