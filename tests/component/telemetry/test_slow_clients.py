"""Probes are answered, whoever else hangs on the port, and however slowly."""

import contextlib
import http.client
import select
import socket
import statistics
import threading
import time
from collections.abc import Iterator

import pytest

from engine.telemetry import health
from engine.telemetry.health import HealthServer
from engine.telemetry.metrics import Metrics
from tests.support.client import eventually

CROWD, PROBES, TIMEOUT = 500, 20, 30.0
BOUND = 33
QUICK = 2.0
"""Seconds within which half of the probes are answered."""
HERE = "127.0.0.1"
SILENT = b""
HALF_A_HEADER = b"GET /metrics HTTP/1.1\r\nX-"
NEVER_READS = b"GET /metrics HTTP/1.1\r\n\r\n"
OWES_A_BODY = b"GET /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx"


@pytest.fixture
def server() -> Iterator[HealthServer]:
    running = HealthServer("0", dict, str, Metrics())
    running.start()
    yield running
    running.stop()


def probe(server: HealthServer) -> float:
    """Seconds until the answer."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(HERE, server.port, timeout=TIMEOUT)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    return time.monotonic() - began


def check_probes(server: HealthServer) -> None:
    assert statistics.median(probe(server) for _ in range(PROBES)) < QUICK
    assert eventually(lambda: threads() <= BOUND)


def slow_client(server: HealthServer, says: bytes, address: str) -> socket.socket:
    place = (HERE, server.port)
    connection = socket.create_connection(place, TIMEOUT, source_address=(address, 0))
    with contextlib.suppress(ConnectionError):
        connection.sendall(says)
    return connection


def is_cut(connection: socket.socket) -> bool:
    readable, _, _ = select.select([connection], [], [], TIMEOUT)
    try:
        return bool(readable) and connection.recv(1) == b""
    except ConnectionError:
        return True


def threads() -> int:
    """Of the server: the one that accepts, and one for each connection."""
    names = [thread.name for thread in threading.enumerate()]
    return sum(name == "health" or "process_request_thread" in name for name in names)


@pytest.mark.parametrize("peers", [1, CROWD], ids=["one-peer", "many-peers"])
@pytest.mark.parametrize("says", [SILENT, HALF_A_HEADER, NEVER_READS, OWES_A_BODY])
def test_probes_are_answered_while_five_hundred_clients_hang_on_the_port(
    server: HealthServer, says: bytes, peers: int
) -> None:
    addresses = (
        [HERE] if peers == 1 else [f"127.0.{1 + n // 250}.{1 + n % 250}" for n in range(peers)]
    )
    with contextlib.ExitStack() as stack:
        for number in range(CROWD):
            client = slow_client(server, says, addresses[number % peers])
            stack.enter_context(contextlib.closing(client))
        check_probes(server)


def test_probes_are_answered_while_a_crowd_comes_back_whenever_it_is_cut(
    server: HealthServer,
) -> None:
    stop = threading.Event()

    def come_back() -> None:
        clients = [slow_client(server, SILENT, "127.0.0.2") for _ in range(CROWD)]
        while not stop.is_set():
            for cut in select.select(clients, [], [], 0.05)[0]:
                clients.remove(cut)
                cut.close()
                clients.append(slow_client(server, SILENT, "127.0.0.2"))
        for client in clients:
            client.close()

    crowd = threading.Thread(target=come_back)
    crowd.start()
    try:
        for _ in range(PROBES):
            probe(server)
        assert eventually(lambda: threads() <= BOUND)
    finally:
        stop.set()
        crowd.join()
    probe(server)


def test_a_new_client_takes_the_place_of_the_oldest_of_the_peer_that_has_the_most(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_MAX_CONNECTIONS", 3)
    with contextlib.ExitStack() as stack:
        alone, oldest, younger, newcomer = (
            stack.enter_context(contextlib.closing(slow_client(server, SILENT, address)))
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4")
        )
        assert is_cut(oldest)
        for connection in (alone, younger, newcomer):
            connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
