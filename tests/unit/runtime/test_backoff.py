import random

from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.retry import backoff


@given(st.integers(1, 10_000), st.integers())
def test_every_wait_is_around_double_the_one_before_up_to_the_longest(
    tries: int, seed: int
) -> None:
    exact = min(15.0, 0.1 * 2.0 ** min(tries - 1, 32))
    wait = backoff(tries, first=0.1, longest=15.0, chance=random.Random(seed))
    assert 0.8 * exact <= wait <= 1.2 * exact


def test_chance_spreads_those_that_failed_together() -> None:
    waits = {backoff(3, first=1.0, longest=60.0) for _ in range(20)}
    assert len(waits) > 1
