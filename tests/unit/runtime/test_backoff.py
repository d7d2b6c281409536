import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.retry import RateLimiter, backoff


@given(st.integers(1, 10_000))
def test_every_wait_is_around_double_the_one_before_up_to_the_longest(tries: int) -> None:
    exact = min(15.0, 0.1 * 2.0 ** min(tries - 1, 32))
    wait = backoff(tries, first=0.1, longest=15.0)
    assert 0.8 * exact <= wait <= 1.2 * exact


def test_chance_spreads_those_that_failed_together() -> None:
    waits = {backoff(3, first=1.0, longest=60.0) for _ in range(20)}
    assert len(waits) > 1


def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    limiter = RateLimiter(rate=100, burst=500)
    waits = [limiter.reserve(1000.0) for _ in range(1001)]
    assert waits[:501] == [0.0] * 501
    assert waits[-1] == pytest.approx(5.0)
    assert limiter.reserve(1005.0) == pytest.approx(0.01)
    assert limiter.reserve(2000.0) == 0.0
