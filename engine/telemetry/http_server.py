"""A small HTTP server for probes: GET and HEAD, one request to a connection, patience with nobody.

One thread waits for all connections, so that a client that hangs costs a socket and no thread.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Any

from engine.errors import UsageError

_LOOPBACK = "127.0.0.1"
_HIGHEST_PORT = 65535
_HEAD_TIMEOUT = 5.0
_CONNECTION_TIMEOUT = 15.0
_MOST_CONNECTIONS, _MOST_OF_A_PEER = 64, 16
_BACKLOG = 1024
_LONGEST_HEAD = 1 << 16
_ACCEPT_RETRY = 0.1


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    """A name or address; "" for every interface."""
    port: int
    """0 for any that is free."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where a client on this machine reaches it."""
        everywhere = self.host in ("", "0.0.0.0", "::")  # noqa: S104 - only compared
        return f"http://{Address(_LOOPBACK if everywhere else self.host, self.port)}"


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `:PORT` for every interface, `PORT` for loopback.

    Errors: UsageError; port 0 is fine, it means any that is free.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host = _LOOPBACK
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _wrong(text, "put an IPv6 address in brackets, as in [::1]:8080")
    if not (port.isascii() and port.isdigit() and int(port) <= _HIGHEST_PORT):
        raise _wrong(text, "give HOST:PORT, :PORT for every interface, or PORT for loopback")
    return Address(host, int(port))


def _wrong(text: str, hint: str) -> UsageError:
    return UsageError("this is no address to listen on", where=repr(text), hint=hint)


@dataclass(frozen=True, slots=True)
class Response:
    """What a request is answered with."""

    status: int
    content_type: str
    content: bytes


Respond = Callable[[str, str], Response | Callable[[], Response]]
"""Gets path and Accept header of each request; what takes time is returned as a callable."""


class Server:
    """Listens from its making on, and answers while `serve` runs.

    Guarantees: a connection ends after 15 seconds at the latest, after 5 if the request isn't there
    by then. 64 are open at most, 16 of them with one peer; whoever comes then takes the place of
    the oldest one of the peer that has the most, so that no client keeps a probe out. Two threads,
    whoever comes: the one that serves, and one for what takes time.
    Errors: OSError when the address can't be listened on.
    """

    def __init__(self, address: Address, respond: Respond) -> None:
        self._respond = respond
        self._socket = _listen(address)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._open: dict[asyncio.Task[None], str] = {}
        """The peer of each connection, in the order in which they came."""
        self.port = int(self._socket.getsockname()[1])

    def serve(self) -> None:
        """Answer until `stop` is called; then every connection is closed."""
        with self._socket, asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    def stop(self) -> None:
        """May be called from another thread."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _serve(self) -> None:
        self._loop.set_default_executor(ThreadPoolExecutor(1, "health-work"))
        accepting = asyncio.create_task(self._accept())
        await self._stopped.wait()
        accepting.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                connection, address = await self._loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(_ACCEPT_RETRY)
                continue
            self._make_room(address[0])
            exchange = asyncio.create_task(self._exchange(connection))
            self._open[exchange] = address[0]
            exchange.add_done_callback(lambda done: self._open.pop(done, None))
            await asyncio.sleep(0)  # whoever is waiting is next, however many still come

    def _make_room(self, newcomer: str) -> None:
        """End the connection whose place this peer takes, if there is no other place."""
        peers = Counter(self._open.values())
        if peers[newcomer] >= _MOST_OF_A_PEER:
            loser = newcomer
        elif len(self._open) >= _MOST_CONNECTIONS:
            loser = max(peers, key=peers.__getitem__)
        else:
            return
        oldest = next(exchange for exchange, peer in self._open.items() if peer == loser)
        del self._open[oldest]
        oldest.cancel()

    async def _exchange(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            async with asyncio.timeout(_CONNECTION_TIMEOUT):
                head = await self._read_head(connection)
                if head:
                    await self._loop.sock_sendall(connection, await self._answer(head))

    async def _read_head(self, connection: socket.socket) -> bytes:
        """Request line and headers, and perhaps some more; nothing if they don't come whole."""
        head = b""
        async with asyncio.timeout(_HEAD_TIMEOUT):
            while b"\n\r\n" not in head and b"\n\n" not in head and len(head) <= _LONGEST_HEAD:
                piece = await self._loop.sock_recv(connection, 8192)
                if not piece:
                    return b""
                head += piece
        return head

    async def _answer(self, head: bytes) -> bytes:
        request = _Request()
        try:
            if request.parse(head):
                answer = self._respond(request.path.partition("?")[0], request.accept)
                if not isinstance(answer, Response):
                    answer = await self._loop.run_in_executor(None, answer)
                request.send(answer)
        except Exception:  # noqa: BLE001 - no traceback reaches a client or the log
            request.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        return request.wfile.getvalue()


class _Request(BaseHTTPRequestHandler):
    """http.server's reading of a request, from bytes and into bytes."""

    server_version = "engine"
    sys_version = ""
    wfile: BytesIO

    def __init__(self) -> None:
        self.wfile = BytesIO()
        self.command = self.requestline = self.request_version = ""

    @property
    def accept(self) -> str:
        """What the client would like to read."""
        return ", ".join(self.headers.get_all("Accept", []))

    def parse(self, head: bytes) -> bool:
        """Whether this is a request to answer; what isn't one is refused here."""
        if len(head) > _LONGEST_HEAD:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        self.rfile = BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
            return False
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """http.server's own refusals, as plain text."""
        del message, explain
        text = HTTPStatus(code).phrase.lower()
        self.send(Response(code, "text/plain; charset=utf-8", f"{text}\n".encode()))

    def send(self, answer: Response) -> None:
        """Write the whole answer."""
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


def _listen(address: Address) -> socket.socket:
    """Both IP versions where no host is named, if the machine has them."""
    place: tuple[Any, ...] = ("::", address.port)
    family, both = socket.AF_INET6, socket.has_dualstack_ipv6() and address.host in ("", "::")
    if not both:
        host = address.host or None
        flags = socket.AI_PASSIVE
        found = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM, flags=flags)
        family, place = found[0][0], found[0][4][:2]
    listening = socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    listening.setblocking(False)
    return listening
