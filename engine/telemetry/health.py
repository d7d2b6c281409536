"""Answer probes and scrapes over HTTP: /healthz, /readyz, /metrics."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engine.errors import UsageError
from engine.telemetry.metrics import Metrics
from engine.telemetry.redact import REDACTOR

_TEXT = "text/plain; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65535
_MAX_CONNECTIONS = 32
_TIMEOUT = 5.0
"""Seconds for a whole connection."""
_POLL_INTERVAL = 0.1
_BACKLOG = 1024


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, of `:PORT` for every interface, of `PORT` for loopback.

    Errors: UsageError. Port 0 is valid and means any free port.
    """
    host, colon, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    is_port = port.isascii() and port.isdigit() and int(port) <= _MAX_PORT
    if not is_port or (":" in host and not is_bracketed):
        hint = "give HOST:PORT, [IPV6]:PORT, :PORT for every interface, or PORT for loopback"
        raise UsageError("this is no address to listen on", where=repr(text), hint=hint)
    return (host.strip("[]") if colon else _LOOPBACK), int(port)


class HealthServer(ThreadingHTTPServer):
    """Serves what its callables return at the moment of the request.

    `checks` returns the reason why each check fails, "" for one that passes; `alive` the same for
    the whole process. Both are called from the server's threads and have to be quick.
    Guarantees: at most 32 connections and threads; each ends after 5 seconds, however slowly its
    client writes or reads. A new connection takes the place of the oldest one of the peer that has
    most, so that slow clients don't block a probe. Known secrets are masked.
    Errors: UsageError for an invalid address, and from `start` for one that can't be listened on.
    """

    daemon_threads = True

    def __init__(
        self,
        address: str,
        checks: Callable[[], Mapping[str, str]],
        alive: Callable[[], str],
        metrics: Metrics,
    ) -> None:
        self._address = address
        self._host, self.port = parse_address(address)
        super().__init__((self._host, self.port), _Handler, bind_and_activate=False)
        self.socket.close()
        self._checks, self._alive = checks, alive
        self._metrics = metrics
        self._lock = threading.Lock()
        self._open: dict[Any, tuple[str, float]] = {}
        """Peer and beginning of each connection, the oldest first."""

    @property
    def url(self) -> str:
        """Where a client on this machine finds the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host or _LOOPBACK
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen, and answer from threads of the server's own."""
        try:
            self.socket = _listen(self._host, self.port)
        except OSError as error:
            words = (error.strerror or str(error)).partition(" (")[0]
            raise UsageError(
                f"can't listen here: {words.lower()}",
                where=self._address,
                hint="choose another --metrics-address, or port 0 for any that is free",
            ) from error
        self.port = self.socket.getsockname()[1]
        serve = self.serve_forever
        threading.Thread(target=serve, args=(_POLL_INTERVAL,), name="health", daemon=True).start()

    def stop(self) -> None:
        """Free the port and close the open connections, in less than a second."""
        if self.socket.fileno() < 0:
            return
        self.shutdown()
        self.server_close()
        with self._lock:
            for request in [*self._open]:
                self._cut(request)

    def answer(self, path: str, accept: str) -> tuple[int, str | bytes, str]:
        """Status, content and content type of a page."""
        if path == "/metrics":
            content_type, content = self._metrics.exposition(accept)
            return HTTPStatus.OK, content, content_type
        if path == "/healthz":
            words = self._alive()
            is_failing = bool(words)
        elif path == "/readyz":
            checks = self._checks()
            is_failing = any(checks.values())
            lines = [f"[-]{one}: {why}" if why else f"[+]{one} ok" for one, why in checks.items()]
            words = "\n".join(lines)
        else:
            words = "not found: there are /healthz, /readyz and /metrics"
            return HTTPStatus.NOT_FOUND, words, _TEXT
        return HTTPStatus.SERVICE_UNAVAILABLE if is_failing else HTTPStatus.OK, words, _TEXT

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(_POLL_INTERVAL)  # without file descriptors this would be a busy loop
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _MAX_CONNECTIONS:
                greediest = Counter(peer for peer, _ in self._open.values()).most_common(1)[0][0]
                self._cut(next(one for one, (peer, _) in self._open.items() if peer == greediest))
            self._open[request] = client_address[0], time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        latest = time.monotonic() - _TIMEOUT
        with self._lock:
            while self._open and next(iter(self._open.values()))[1] < latest:
                self._cut(next(iter(self._open)))

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error, and no traceback reaches the log."""

    def _cut(self, request: Any) -> None:
        """Its thread, which waits for this client, wakes up and ends."""
        del self._open[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: HealthServer
    server_version = "engine"
    sys_version = ""

    def do_GET(self) -> None:
        try:
            page = self.server.answer(self.path.partition("?")[0], self.headers.get("Accept", ""))
        except Exception as error:  # noqa: BLE001 - a check that breaks is one that fails
            words = f"the check failed: {type(error).__name__}"
            page = HTTPStatus.SERVICE_UNAVAILABLE, words, _TEXT
        status, content, content_type = page
        if isinstance(content, str):
            content = f"{REDACTOR(content) or 'ok'}\n".encode(errors="backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Probes come every few seconds and are not logged."""


def _listen(host: str, port: int) -> socket.socket:
    """Both IP versions where no host is named, if the machine has them."""
    both = host in ("", "::") and socket.has_dualstack_ipv6()
    found = socket.getaddrinfo("::" if both else host or None, port, flags=socket.AI_PASSIVE)
    family, place = found[0][0], found[0][4][:2]
    return socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
