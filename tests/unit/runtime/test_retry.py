from collections.abc import Callable

import pytest

from engine.errors import BusyError, EngineError, ForbiddenError, UnreachableError
from engine.runtime.retry import retry_delay, retry_transient


def busy(retry_after: float = 0.0) -> BusyError:
    return BusyError("later", status=429, reason="TooManyRequests", retry_after=retry_after)


def failing(*errors: EngineError) -> Callable[[], int]:
    """A read that fails with each error in turn, then tells how often it was tried."""
    left = list(errors)

    def read() -> int:
        if left:
            raise left.pop(0)
        return len(errors) + 1

    return read


def test_a_busy_server_and_a_dropped_connection_are_tried_again() -> None:
    said: list[str] = []
    assert retry_transient(failing(busy(), UnreachableError("dropped"), busy()), said.append) == 4
    assert said == ["later"]


def test_what_trying_again_can_not_mend_is_told_at_once() -> None:
    refused = ForbiddenError("no", status=403, reason="Forbidden")
    with pytest.raises(ForbiddenError):
        retry_transient(failing(refused))


@pytest.mark.parametrize("error", [busy(61), busy(0.2), UnreachableError("refused")])
def test_trying_ends_with_the_callers_time(error: EngineError) -> None:
    with pytest.raises(type(error)):
        retry_transient(failing(*[error] * 50), timeout=0.1)


def test_trying_ends_after_so_many_tries() -> None:
    assert retry_transient(failing(busy()), tries=2) == 2
    with pytest.raises(BusyError):
        retry_transient(failing(busy(), busy()), tries=2)


def test_the_server_says_how_long_to_wait_within_reason() -> None:
    assert retry_delay(busy(7.0), 1) == 7.0
    assert retry_delay(UnreachableError("refused"), 1) < retry_delay(UnreachableError("no"), 9)
