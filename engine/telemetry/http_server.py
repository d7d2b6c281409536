"""A small HTTP server for probes: GET and HEAD, a thread per request, and patience with nobody."""

import socket
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engine.telemetry.http_address import Address

_IDLE_TIMEOUT = 5.0
_CONNECTION_TIMEOUT = 15.0
_MOST_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Response:
    """What a request is answered with."""

    status: int
    content_type: str
    content: bytes


Respond = Callable[[str, str], Response]


class Server(ThreadingHTTPServer):
    """`respond` gets path and Accept header of each request.

    Guarantees: a connection ends after 15 seconds at the latest, after 5 in silence; what comes
    while 64 are open is turned away. Errors: OSError when the address can't be listened on.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False
    request_queue_size = 32

    def __init__(self, address: Address, respond: Respond) -> None:
        self.respond = respond
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}
        family, host = _family(address.host, address.port)
        self.address_family = family
        super().__init__((host, address.port), _Handler)

    def server_bind(self) -> None:
        """Without the look-up of the machine's name that http.server makes, which may take long."""
        if self.address_family == socket.AF_INET6 and self.server_address[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more connection."""
        del client_address
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                return False
            self._open[request] = time.monotonic()
            return True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and make room for another."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called a few times a second."""
        oldest = time.monotonic() - _CONNECTION_TIMEOUT
        with self._lock:
            late = [connection for connection, since in self._open.items() if since < oldest]
        _cut(late)

    def server_close(self) -> None:
        """Stop listening, and close what is open."""
        super().server_close()
        with self._lock:
            left = [*self._open]
        _cut(left)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news, and a traceback is no log line."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _IDLE_TIMEOUT
    server_version = "engine"
    sys_version = ""
    server: Server

    def do_GET(self) -> None:
        try:
            accept = ", ".join(self.headers.get_all("Accept", []))
            answer = self.server.respond(self.path.partition("?")[0], accept)
        except Exception:  # noqa: BLE001 - no traceback reaches a client or the log
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._send(answer)

    do_HEAD = do_GET  # noqa: N815 - http.server's names

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """http.server's own refusals, as plain text; a method that it doesn't know is a 405."""
        del message, explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        text = HTTPStatus(code).phrase.lower()
        self._send(Response(code, "text/plain; charset=utf-8", f"{text}\n".encode()))

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.content)))
        self.send_header("Cache-Control", "no-store")
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Probes come every few seconds; nobody wants to read of them."""


def _cut(connections: list[socket.socket]) -> None:
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


def _family(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """Both IP versions where no host is named, if the machine has them."""
    if not host:
        both = socket.has_dualstack_ipv6()
        return (socket.AF_INET6, "::") if both else (socket.AF_INET, "")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, place = found[0]
    return family, str(place[0])
