"""What a server answers becomes one of the engine's errors."""

import errno
import os

import pytest

from engine.cluster.api_errors import api_error, network_error


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("7", 7.0), ("86400", 30.0), (None, 0.0), ("", 0.0), ("²", 0.0), ("-1", 0.0), ("soon", 0.0)],
)
def test_a_server_can_not_ask_to_be_left_alone_for_long(asked: str | None, seconds: float) -> None:
    assert api_error("GET", 503, "", asked).retry_after == seconds


def test_a_lack_of_open_files_is_not_blamed_on_the_server() -> None:
    cause = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    words = str(network_error(cause, "https://cluster"))
    assert words == "too many open files for one more connection (raise the limit: ulimit -n)"
