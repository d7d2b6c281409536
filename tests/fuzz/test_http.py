"""Whatever bytes reach the port of probes and metrics: an answer or an end, and it goes on."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from engine.telemetry import health
from engine.telemetry.health import HealthServer
from engine.telemetry.metrics import Metrics
from tests.fuzz import play
from tests.support.client import eventually
from tests.support.http import request

_TIMEOUT = 20.0
_PIECES = (
    b"GET", b"HEAD", b"POST", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b" ", b"\t", b"/healthz",
    b"/readyz", b"/metrics", b"*", b"http://x/healthz", b"/%00", b"?" + b"a" * 9000, b" HTTP/1.1",
    b" HTTP/1.0", b" HTTP/0.9", b" HTTP/9.9", b" HTTP/1.", b" HTTP/" + b"1" * 400 + b".1",
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\x00", b"\xff",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"Host: x\r\n",
    b"Accept: application/openmetrics-text\r\n", b"Accept: " + b",;q=" * 2000 + b"\r\n",
    b"Content-Length: -1\r\n", b"Content-Length: 99999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n", b"Connection: keep-alive\r\n", b"X-Y: z\r\n" * 150,
    b" folded\r\n", b": \r\n", b"\r\nGET /healthz HTTP/1.1\r\n\r\n",
)  # fmt: skip


@dataclass(frozen=True)
class Client:
    """What a client says, in how many sends, and how it leaves."""

    says: tuple[bytes, ...]
    finishes: bool
    reads: bool


_CLIENTS = st.builds(
    Client,
    st.lists(
        st.one_of(
            st.binary(max_size=50),
            st.lists(st.sampled_from(_PIECES), max_size=12).map(b"".join),
            st.lists(st.sampled_from(_PIECES), max_size=6).map(
                lambda pieces: b"GET /healthz HTTP/1.1\r\n" + b"".join(pieces) + b"\r\n\r\n"
            ),
        ),
        max_size=3,
    ).map(tuple),
    st.booleans(),
    st.booleans(),
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HealthServer]:
    monkeypatch.setattr(health, "_TIMEOUT", 0.2)
    running = HealthServer("0", dict, str, Metrics())
    running.start()
    yield running
    running.stop()


def test_whatever_a_client_says_it_is_answered_or_cut_off_and_probes_go_on(
    server: HealthServer, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threading.active_count()

    def check(client: Client) -> None:
        answer = _answer(server.port, client)
        assert b"Traceback" not in answer
        assert eventually(lambda: _is_healthy(server.port))
        assert eventually(lambda: threading.active_count() <= before + 1)

    play(_CLIENTS, check)
    assert capfd.readouterr() == ("", "")


def _answer(port: int, client: Client) -> bytes:
    """Errors: TimeoutError when the server neither answers nor ends it."""
    answer = b""
    connection = socket.create_connection(("127.0.0.1", port), _TIMEOUT)
    with connection, contextlib.suppress(ConnectionError):
        for piece in client.says:
            connection.sendall(piece)
        if client.finishes:
            with contextlib.suppress(OSError):  # it is cut off already
                connection.shutdown(socket.SHUT_WR)
        while client.reads and (piece := connection.recv(65536)):
            answer += piece
    return answer


def _is_healthy(port: int) -> bool:
    """On a busy machine this asker may be the slow client that is cut off."""
    try:
        return request("GET", f"http://127.0.0.1:{port}/healthz").code == 200
    except ConnectionError:
        return False
