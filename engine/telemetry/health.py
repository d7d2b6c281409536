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

_UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
_TEXT = "text/plain; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65535
_MAX_CONNECTIONS = 32
_TIMEOUT = 5.0
_POLL_INTERVAL = 0.1
_BACKLOG = 1024
_SCRAPE_INTERVAL = 0.1

Answer = tuple[int, str, bytes]
"""Status, content type and content."""


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


def format_address(host: str, port: int) -> str:
    """The inverse of `parse_address`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class HealthServer:
    """Serves what its callables return at the moment of the request.

    `checks` returns the reason why each check fails, "" for one that passes; `alive` the same for
    the whole process; `remarks` returns notes on an engine that is ready. All are called from the
    server's threads and have to be quick.
    Guarantees: at most 32 connections and threads; one that is silent for 5 seconds ends. A new
    connection takes the place of the oldest one of the peer that has most, so that slow clients
    don't block a probe. Known secrets are masked.
    Errors: UsageError for an invalid address, and from `start` for one that can't be listened on.
    """

    def __init__(
        self,
        address: str,
        checks: Callable[[], Mapping[str, str]],
        alive: Callable[[], str],
        metrics: Metrics | None,
        remarks: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._address = parse_address(address)
        self._checks = checks
        self._alive = alive
        self._metrics = metrics
        self._remarks = remarks
        self._server: _Server | None = None
        self._scraping = threading.Lock()
        self._scraped = "", 0.0, ("", b"")

    @property
    def port(self) -> int:
        """The port in use; before `start` the one that was asked for."""
        return self._server.server_port if self._server is not None else self._address[1]

    @property
    def url(self) -> str:
        """Where a client on this machine finds the server."""
        host = self._address[0]
        everywhere = host in ("", "0.0.0.0", "::")  # noqa: S104 - only compared
        return f"http://{format_address(_LOOPBACK if everywhere else host, self.port)}"

    def start(self) -> None:
        """Listen, and answer from threads of the server's own."""
        if self._server is not None:
            return
        try:
            self._server = _Server(*self._address, self._answer)
        except OSError as error:
            words = (error.strerror or str(error)).partition(" (")[0]
            raise UsageError(
                f"can't listen here: {words.lower()}",
                where=format_address(*self._address),
                hint="choose another --metrics-address, or port 0 for any that is free",
            ) from error
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(_POLL_INTERVAL,), name="health", daemon=True).start()

    def stop(self) -> None:
        """Free the port and close the open connections, in less than a second."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _answer(self, path: str, accept: str) -> Answer:
        match path:
            case "/healthz":
                reason = self._alive()
                return _text(_UNAVAILABLE if reason else HTTPStatus.OK, reason)
            case "/readyz":
                reasons = self._checks()
                lines = [
                    f"[-]{name}: {why}" if why else f"[+]{name} ok" for name, why in reasons.items()
                ]
                lines += [f"[+]{name}: {words}" for name, words in self._remarks().items() if words]
                failing = any(reasons.values())
                return _text(_UNAVAILABLE if failing else HTTPStatus.OK, "\n".join(lines))
            case "/metrics" if self._metrics is not None:
                return HTTPStatus.OK, *self._exposition(self._metrics, accept)
        words = "not found: there are /healthz, /readyz and /metrics"
        return _text(HTTPStatus.NOT_FOUND, words)

    def _exposition(self, metrics: Metrics, accept: str) -> tuple[str, bytes]:
        # One at a time, and ten a second: a crowd of scrapers takes no time from probes. None gets
        # numbers from before it asked.
        asked = time.monotonic()
        with self._scraping:
            known, begun, answer = self._scraped
            if accept != known or begun < asked:
                time.sleep(max(0.0, begun + _SCRAPE_INTERVAL - time.monotonic()))
                begun = time.monotonic()
                answer = metrics.exposition(accept)
                self._scraped = accept, begun, answer
            return answer


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and a bound on both."""

    daemon_threads = True

    def __init__(self, host: str, port: int, answer: Callable[[str, str], Answer]) -> None:
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = _listen(host, port)
        self.server_port = int(self.socket.getsockname()[1])
        self.answer = answer
        self._lock = threading.Lock()
        self._open: dict[Any, str] = {}
        """The peer of each connection, the oldest first."""

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(_POLL_INTERVAL)  # without file descriptors this would be a busy loop
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _MAX_CONNECTIONS:
                (greediest, _) = Counter(self._open.values()).most_common(1)[0]
                self._cut(next(one for one, peer in self._open.items() if peer == greediest))
            self._open[request] = client_address[0]
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for request in [*self._open]:
                self._cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error, and no traceback reaches the log."""

    def _cut(self, request: Any) -> None:
        """Its thread, which waits for this client, wakes up and ends."""
        del self._open[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT
    server_version = "engine"
    sys_version = ""

    def do_GET(self) -> None:
        accept = ", ".join(self.headers.get_all("Accept", []))
        try:
            answer = self.server.answer(self.path.partition("?")[0], accept)
        except Exception as error:  # noqa: BLE001 - a check that breaks is one that fails
            words = f"the check failed: {type(error).__name__}"
            answer = _text(_UNAVAILABLE, words)
        self._send(*answer)

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """http.server's own refusals, as plain text."""
        del message, explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        self._send(*_text(code, HTTPStatus(code).phrase.lower()))

    def _send(self, status: int, content_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Probes come every few seconds and are not logged."""


def _text(status: int, text: str) -> Answer:
    content = f"{REDACTOR(text) or 'ok'}\n"
    return status, _TEXT, content.encode(errors="backslashreplace")


def _listen(host: str, port: int) -> socket.socket:
    """Both IP versions where no host is named, if the machine has them."""
    if host in ("", "::") and socket.has_dualstack_ipv6():
        place: Any = ("::", port)
        family, both = socket.AF_INET6, True
    else:
        kind = socket.SOCK_STREAM
        found = socket.getaddrinfo(host or None, port, type=kind, flags=socket.AI_PASSIVE)
        family, place, both = found[0][0], found[0][4][:2], False
    return socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
