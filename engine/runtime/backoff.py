"""How long to wait before trying again: doubling, capped, and spread by chance."""

import random

_SPREAD = 0.2


def backoff(
    tries: int, *, first: float, longest: float, chance: random.Random | None = None
) -> float:
    """Seconds before try number `tries` + 1 (`tries` counts from 1), give or take a fifth."""
    exact = min(longest, first * 2.0 ** min(tries - 1, 32))
    spread: float = (chance or random).uniform(1 - _SPREAD, 1 + _SPREAD)
    return exact * spread
