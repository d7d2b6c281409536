"""Probes and scrapes, over real connections."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import pytest

from engine.errors import UsageError
from engine.telemetry import health
from engine.telemetry.health import HealthServer, parse_address
from engine.telemetry.metrics import Metrics
from engine.telemetry.redact import REDACTOR
from tests.support.http import Reply, request


@dataclass
class State:
    """What the engine would say of itself."""

    checks: dict[str, str] = field(default_factory=lambda: {"caches": "", "directory": ""})
    alive: str = ""


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def server(state: State, metrics: Metrics) -> Iterator[HealthServer]:
    running = HealthServer("0", lambda: state.checks, lambda: state.alive, metrics)
    running.start()
    yield running
    running.stop()


def ask(server: HealthServer, path: str, method: str = "GET", accept: str = "*/*") -> Reply:
    return request(method, f"http://127.0.0.1:{server.port}{path}", headers={"Accept": accept})


def test_a_healthy_engine_says_ok(server: HealthServer) -> None:
    reply = ask(server, "/healthz")
    assert (reply.code, reply.body) == (200, "ok\n")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_an_engine_that_is_stuck_says_why(server: HealthServer, state: State) -> None:
    state.alive = "no worker has moved for 120s"
    reply = ask(server, "/healthz")
    assert (reply.code, reply.body) == (503, "no worker has moved for 120s\n")


def test_readiness_has_a_line_per_check(server: HealthServer, state: State) -> None:
    assert ask(server, "/readyz").body == "[+]caches ok\n[+]directory ok\n"
    assert ask(server, "/readyz").code == 200
    state.checks["directory"] = "/x: no such folder"
    reply = ask(server, "/readyz")
    assert reply.code == 503
    assert reply.body == "[+]caches ok\n[-]directory: /x: no such folder\n"


def test_a_query_changes_nothing(server: HealthServer) -> None:
    assert ask(server, "/readyz?verbose").code == 200


def test_metrics_come_in_the_format_that_is_asked_for(server: HealthServer) -> None:
    classic = ask(server, "/metrics")
    assert classic.code == 200
    assert classic.headers["Content-Type"].startswith("text/plain; version=")
    assert "engine_build_info{" in classic.body
    modern = ask(server, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert modern.headers["Content-Type"].startswith("application/openmetrics-text")
    assert modern.body.endswith("# EOF\n")


def test_no_scrape_is_answered_with_numbers_from_before_it(
    server: HealthServer, metrics: Metrics
) -> None:
    asked = count()
    metrics.bind({"engine_held_jobs": lambda: next(asked)})
    for number in range(3):
        assert f"\nengine_held_jobs {number}.0\n" in ask(server, "/metrics").body


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics/x", "/../etc/passwd", "/HEALTHZ"])
def test_any_other_page_is_not_found(server: HealthServer, path: str) -> None:
    assert ask(server, path).code == 404


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"]
)
def test_only_reading_is_allowed(server: HealthServer, method: str) -> None:
    assert ask(server, "/healthz", method).code == 501


def test_head_has_the_status_and_no_body(server: HealthServer, state: State) -> None:
    state.alive = "stuck"
    reply = ask(server, "/healthz", "HEAD")
    assert (reply.code, reply.body, reply.headers["Content-Length"]) == (503, "", "6")


def test_a_check_that_breaks_is_a_check_that_fails(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def broken() -> str:
        raise ValueError("a secret thing")

    def all_broken() -> Mapping[str, str]:
        raise KeyError("a secret thing")

    server = HealthServer("0", all_broken, broken, Metrics())
    server.start()
    try:
        assert ask(server, "/healthz").body == "the check failed: ValueError\n"
        assert ask(server, "/readyz").body == "the check failed: KeyError\n"
        assert ask(server, "/readyz").code == 503
    finally:
        server.stop()
    assert capfd.readouterr() == ("", "")


def test_known_secrets_are_masked(server: HealthServer, state: State) -> None:
    REDACTOR.add(["correct-horse-battery"])
    state.alive = "no such folder: /run/correct-horse-battery"
    assert "correct-horse" not in ask(server, "/healthz").body


def test_garbage_is_refused_without_a_word_on_stderr(
    server: HealthServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n",
        b"",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            try:
                answer = connection.recv(65536)
            except ConnectionResetError:
                continue
            assert b"Traceback" not in answer
            assert b"ok\n" not in answer
    assert ask(server, "/healthz").code == 200
    assert capfd.readouterr() == ("", "")


def test_a_client_that_says_nothing_keeps_no_other_waiting(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_TIMEOUT", 120.0)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    try:
        began = time.monotonic()
        assert ask(server, "/healthz").code == 200
        assert time.monotonic() - began < 30
    finally:
        for connection in silent:
            connection.close()


def test_a_client_that_falls_silent_is_cut_off(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_TIMEOUT", 0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-")
        assert connection.recv(100) == b""


def test_a_client_that_writes_byte_by_byte_is_cut_off_as_well(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_TIMEOUT", 0.3)
    began = time.monotonic()
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection,
    ):
        while time.monotonic() < began + 30:
            connection.sendall(b"X")
            time.sleep(0.02)
    assert time.monotonic() < began + 30


def test_stopping_is_quick_even_with_clients_connected(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_TIMEOUT", 120.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        time.sleep(0.1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 30
        assert connection.recv(100) == b""
    names = [thread.name for thread in threading.enumerate()]
    assert "health" not in names


def test_stopping_twice_or_before_the_start_does_nothing() -> None:
    server = HealthServer("0", dict, str, Metrics())
    server.stop()
    server.start()
    port = server.port
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_port_can_be_used_again_at_once() -> None:
    first = HealthServer("0", dict, str, Metrics())
    first.start()
    port = first.port
    ask(first, "/healthz")
    first.stop()
    second = HealthServer(str(port), dict, str, Metrics())
    second.start()
    try:
        assert ask(second, "/healthz").code == 200
    finally:
        second.stop()


def test_a_busy_port_is_a_usage_error_that_says_what_to_do(server: HealthServer) -> None:
    other = HealthServer(f"127.0.0.1:{server.port}", dict, str, Metrics())
    with pytest.raises(UsageError) as caught:
        other.start()
    assert str(caught.value) == (
        f"127.0.0.1:{server.port}: can't listen here: address already in use "
        "(choose another --metrics-address, or port 0 for any that is free)"
    )


def test_a_host_that_does_not_exist_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="can't listen here"):
        HealthServer("host.invalid:0", dict, str, Metrics()).start()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        (":8080", ("", 8080)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("localhost:9", ("localhost", 9)),
        ("[::1]:8080", ("::1", 8080)),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":", "host:", "host:http", "::1:80", "1:65536", "-1", "٣"])
def test_what_is_no_address_is_refused_with_the_ways_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="no address to listen on") as caught:
        parse_address(text)
    assert caught.value.hint


def test_every_interface_answers_on_loopback_too() -> None:
    server = HealthServer(":0", dict, str, Metrics())
    server.start()
    try:
        assert ask(server, "/healthz").code == 200
        assert server.url == f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def test_many_ask_at_once(server: HealthServer) -> None:
    found: list[int] = []

    def scrape() -> None:
        found.extend(ask(server, path).code for path in ("/metrics", "/readyz", "/healthz"))

    run(scrape, times=10)
    assert found == [200] * 30


def run(what: Callable[[], None], *, times: int) -> None:
    threads = [threading.Thread(target=what) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
