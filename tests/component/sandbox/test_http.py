"""The server itself: bad input, clients that hang up, ports, threads."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from engine.sandbox import Clock, Sandbox, SandboxError
from tests.support.client import eventually
from tests.support.sandbox_namespace import Namespace


def connect(sandbox: Sandbox) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(sandbox.url).port or 0), timeout=30)


def talk(sandbox: Sandbox, sent: bytes) -> bytes:
    """Send bytes and read until the server closes."""
    with closing(connect(sandbox)) as wire:
        wire.sendall(sent)
        wire.shutdown(socket.SHUT_WR)
        got = b""
        while data := wire.recv(65536):
            got += data
    return got


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
        b"GET /api HTTP/1.1\r\nbroken header\r\n\r\n",
        b"POST /api HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_a_status(
    sandbox: Sandbox, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    got = talk(sandbox, sent)
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["kind"] == "Status"
    assert Namespace.of(sandbox).client.get("/healthz").code == 200
    assert capfd.readouterr().err == ""


def test_a_head_without_end_is_refused(sandbox: Sandbox) -> None:
    got = talk(sandbox, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000)
    assert got.startswith(b"HTTP/1.1 431 ")


def test_a_connection_is_kept_for_the_next_request(sandbox: Sandbox) -> None:
    with closing(connect(sandbox)) as wire:
        for _ in range(3):
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert wire.recv(65536).endswith(b"ok")


def test_two_requests_sent_at_once_are_both_answered(sandbox: Sandbox) -> None:
    got = talk(sandbox, b"GET /healthz HTTP/1.1\r\n\r\n" * 2)
    assert got.count(b"HTTP/1.1 200 OK") == 2


def test_a_client_that_asks_first_is_told_to_go_on(sandbox: Sandbox) -> None:
    body = b'{"metadata":{"name":"asked"}}'
    with closing(connect(sandbox)) as wire:
        wire.sendall(
            b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nExpect: 100-continue\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        assert wire.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(body)
        assert wire.recv(65536).startswith(b"HTTP/1.1 201 ")


def test_a_client_that_hangs_up_in_a_watch_leaves_no_thread(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threading.active_count()
    wires = [connect(sandbox) for _ in range(5)]
    for wire in wires:
        wire.sendall(b"GET /api/v1/pods?watch=true HTTP/1.1\r\n\r\n")
    eventually(lambda: sandbox.open_watches == 5)
    for wire in wires:
        wire.close()
    eventually(lambda: sandbox.open_watches == 0)
    eventually(lambda: threading.active_count() <= before)
    assert capfd.readouterr().err == ""


def test_a_client_that_hangs_up_in_a_body_changes_nothing(sandbox: Sandbox) -> None:
    with closing(connect(sandbox)) as wire:
        wire.sendall(
            b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nContent-Length: 900\r\n\r\n{"
        )
    assert Namespace.of(sandbox).client.get("/healthz").code == 200


def test_a_port_in_use_is_one_clear_line(sandbox: Sandbox) -> None:
    port = urlsplit(sandbox.url).port or 0
    with pytest.raises(SandboxError) as caught:
        Sandbox(port=port).start()
    assert str(caught.value) == (
        f"port {port} is already in use (choose another port, or 0 for any free one)"
    )


def test_a_version_that_is_none_is_one_clear_line() -> None:
    with pytest.raises(SandboxError, match=r"unknown version 'new' \(such as 1\.36\)"):
        Sandbox(version="new")


def test_stopping_ends_every_thread_and_frees_the_port() -> None:
    before = threading.active_count()
    running = Sandbox(clock=Clock(speed=0)).start()
    port = urlsplit(running.url).port or 0
    wire = connect(running)
    wire.sendall(b"GET /api/v1/pods?watch=true HTTP/1.1\r\n\r\n")
    eventually(lambda: running.open_watches == 1)
    running.stop()
    wire.close()
    eventually(lambda: threading.active_count() <= before)
    with Sandbox(port=port) as again:
        assert again.url.endswith(f":{port}")


def test_a_bug_is_an_internal_error_and_the_server_stays_up(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    place = Namespace.of(sandbox)
    with monkeypatch.context() as patch:
        patch.setattr("engine.sandbox.verbs.lists.list_page", broken)
        got = place.client.get(place.path("pods"))
    assert (got.code, got.reason) == (500, "InternalError")
    assert "failed" in caplog.text
    assert place.client.get(place.path("pods")).code == 200


def test_deeply_nested_json_is_a_bad_request(sandbox: Sandbox) -> None:
    place = Namespace.of(sandbox)
    body = b"[" * 100_000
    got = place.client.call("POST", place.path("configmaps"), raw=body)
    assert got.code == 400
    got = place.client.call("POST", place.path("configmaps"), raw=b'{"a":' * 50_000)
    assert got.code == 400


def test_many_clients_write_at_once_and_nothing_is_lost(sandbox: Sandbox) -> None:
    place = Namespace.of(sandbox)
    place.client.post(
        place.path("configmaps"), {"metadata": {"name": "counter"}, "data": {"n": "0"}}
    )

    def count() -> None:
        done = 0
        while done < 20:
            current = place.client.get(place.path("configmaps", "counter")).body
            current["data"]["n"] = str(int(current["data"]["n"]) + 1)
            done += place.client.put(place.path("configmaps", "counter"), current).code == 200

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.client.get(place.path("configmaps", "counter")).body["data"]["n"] == "120"
