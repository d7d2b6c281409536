from engine.runtime.workqueue import ItemRateLimiter, TokenBucket


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_a_key_at_a_time() -> None:
    bucket = TokenBucket(rate=10, burst=3, clock=Clock())
    assert [round(bucket.reserve(), 3) for _ in range(5)] == [0, 0, 0, 0.1, 0.2]


def test_what_has_waited_long_enough_passes_again() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=1, clock=clock)
    bucket.reserve()
    bucket.reserve()
    clock.now = 60.0
    assert [round(bucket.reserve(), 3) for _ in range(2)] == [0, 0.1]


def test_each_failure_of_a_key_doubles_its_own_wait_only() -> None:
    limit = ItemRateLimiter()
    waits = [limit.when("a") for _ in range(6)]
    assert waits[5] > 10 * waits[0]
    assert limit.when("b") < 0.13
    assert limit.failures("a") == 6


def test_success_makes_a_key_begin_anew() -> None:
    limit = ItemRateLimiter()
    for _ in range(8):
        limit.when("a")
    limit.forget("a")
    assert limit.when("a") < 0.13


def test_thousands_of_keys_that_fail_at_once_come_back_one_after_the_other() -> None:
    limit = ItemRateLimiter(TokenBucket(rate=100, burst=50, clock=Clock()))
    waits = sorted(limit.when(number) for number in range(1000))
    assert 9 < waits[-1] < 10
