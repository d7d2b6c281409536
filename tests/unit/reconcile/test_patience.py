from collections.abc import Callable

import pytest

from engine.errors import BusyError, EngineError, ForbiddenError, UnreachableError
from engine.runtime.patience import patiently


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
    assert patiently(failing(busy(), UnreachableError("dropped"), busy()), said.append) == 4
    assert said == ["later"]


def test_what_trying_again_can_not_mend_is_told_at_once() -> None:
    refused = ForbiddenError("no", status=403, reason="Forbidden")
    with pytest.raises(ForbiddenError):
        patiently(failing(refused), print)


@pytest.mark.parametrize("error", [busy(61), busy(0.2), UnreachableError("refused")])
def test_patience_ends_with_the_callers_time(error: EngineError) -> None:
    with pytest.raises(type(error)):
        patiently(failing(*[error] * 50), lambda _: None, limit=0.1)
