"""What a server answers becomes one of the engine's errors."""

import pytest

from engine.cluster.api_errors import api_error


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("7", 7.0), ("86400", 30.0), (None, 0.0), ("", 0.0), ("²", 0.0), ("-1", 0.0), ("soon", 0.0)],
)
def test_a_server_can_not_ask_to_be_left_alone_for_long(asked: str | None, seconds: float) -> None:
    assert api_error("GET", 503, "", asked).retry_after == seconds
