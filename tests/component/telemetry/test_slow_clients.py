"""Probes are answered, whoever else hangs on the port, and however slowly."""

import contextlib
import http.client
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from engine.telemetry import http_server
from engine.telemetry.health import HealthServer
from engine.telemetry.metrics import Metrics

CROWD, PROBES, TIMEOUT = 500, 20, 5.0
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


def probe(server: HealthServer) -> int:
    connection = http.client.HTTPConnection(HERE, server.port, timeout=TIMEOUT)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status


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


def threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("health"))


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
        assert [probe(server) for _ in range(PROBES)] == [200] * PROBES
        assert threads() in (["health"], ["health", "health-work_0"])


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
        assert [probe(server) for _ in range(PROBES)] == [200] * PROBES
        assert threads() in (["health"], ["health", "health-work_0"])
    finally:
        stop.set()
        crowd.join()
    assert probe(server) == 200


def test_whoever_comes_takes_the_place_of_the_oldest_of_the_peer_that_has_the_most(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 3)
    with contextlib.ExitStack() as stack:
        alone, oldest, younger, newcomer = (
            stack.enter_context(contextlib.closing(slow_client(server, SILENT, address)))
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4")
        )
        assert is_cut(oldest)
        for connection in (alone, younger, newcomer):
            connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"


def test_a_peer_that_has_its_share_makes_room_for_itself(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MOST_OF_A_PEER", 2)
    with contextlib.ExitStack() as stack:
        other, oldest, _, newcomer = (
            stack.enter_context(contextlib.closing(slow_client(server, SILENT, address)))
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.3")
        )
        assert is_cut(oldest)
        for connection in (other, newcomer):
            connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
