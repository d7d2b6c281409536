"""A threaded HTTP/1.1 server on plain sockets: one thread a connection, one send a reply.

Hand-written as ``http.server`` costs three times as much per request as all the rest together.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import socket
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from engine.sandbox.errors import SandboxError, StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger("engine.sandbox")

JSON = "application/json"
BODY_LIMIT = 3 * 1024 * 1024
HEAD_LIMIT = 64 * 1024
DRAIN_SECONDS = 0.5
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names in lower case, the last value of a repeated query key."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def user_agent(self) -> str:
        """As the client calls itself."""
        return self.headers.get("user-agent", "")


@dataclass(frozen=True, slots=True)
class Response:
    """One reply with a body."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply without an end of its own; an empty chunk only asks whether the client is there."""

    chunks: Iterator[bytes]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    code: int = 200


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection without a reply (a fault)."""

    why: str = ""


Reply = Response | Stream | HangUp


@dataclass(frozen=True, slots=True)
class Head:
    """The part of a request before its body."""

    method: str
    target: str
    keep_alive: bool
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, body: bytes) -> Request:
        """The whole request, with its body."""
        path, _, query = self.target.partition("?")
        parsed = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        return Request(self.method, path, parsed, self.headers, body)


def read_head(raw: bytes) -> Head:
    """Errors: ValueError for what isn't HTTP/1.x."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise ValueError("not HTTP/1.x")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError("a header without a colon")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    keep = connection != "close" and (version != "HTTP/1.0" or connection == "keep-alive")
    return Head(method, target, keep, headers)


class _ClientGoneError(Exception):
    """The other side closed the connection."""


class HttpServer:
    """Serves ``handle`` on 127.0.0.1. ``handle`` never raises."""

    def __init__(self, handle: Callable[[Request], Reply], date: Callable[[], str]) -> None:
        self._handle = handle
        self._date = date
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def start(self, port: int = 0) -> int:
        """Listen, and give the port. Errors: SandboxError for a port in use."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE:
                hint = "choose another port, or 0 for any free one"
                raise SandboxError(f"port {port} is already in use", hint=hint) from None
            raise SandboxError(f"cannot listen on port {port}: {error.strerror}") from None
        listener.listen(256)
        self._listener = listener
        threading.Thread(target=self._accept, name="sandbox-http", daemon=True).start()
        return int(listener.getsockname()[1])

    def stop(self) -> None:
        """Accept none any more, and end all connections."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """End all connections; new ones are accepted."""
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    def _accept(self) -> None:
        listener = self._listener
        while listener is not None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        wire = _Wire(connection)
        try:
            while self._one(wire):
                pass
        except (_ClientGoneError, OSError):
            pass
        except Exception:  # noqa: BLE001 - a bug ends its connection only
            _log.exception("sandbox: a connection failed")
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _one(self, wire: _Wire) -> bool:
        """Answer one request; False when the connection is to be closed."""
        try:
            head = wire.read_head()
            body = wire.read_body(head)
        except StatusError as error:
            self._send(wire, _refusal(error), keep_alive=False)
            wire.drain()
            return False
        reply = self._handle(head.request(body))
        if isinstance(reply, Stream):
            self._stream(wire, reply)
            return head.keep_alive
        if isinstance(reply, Response):
            self._send(wire, reply, keep_alive=head.keep_alive)
            return head.keep_alive
        return False

    def _head(self, code: int, content_type: str, extra: tuple[tuple[str, str], ...]) -> str:
        lines = "".join(f"{name}: {value}\r\n" for name, value in extra)
        return (
            f"HTTP/1.1 {code} {_PHRASES.get(code, '')}\r\nContent-Type: {content_type}\r\n"
            f"Date: {self._date()}\r\n{lines}"
        )

    def _send(self, wire: _Wire, reply: Response, *, keep_alive: bool) -> None:
        close = "" if keep_alive else "Connection: close\r\n"
        head = self._head(reply.code, reply.content_type, reply.headers)
        head += f"{close}Content-Length: {len(reply.body)}\r\n\r\n"
        wire.send(head.encode("latin-1", "replace") + reply.body)

    def _stream(self, wire: _Wire, reply: Stream) -> None:
        """Send chunks until they end or the client hangs up; then the source is closed."""
        head = self._head(reply.code, reply.content_type, reply.headers)
        pending = (head + "Transfer-Encoding: chunked\r\n\r\n").encode("latin-1")
        try:
            for chunk in reply.chunks:
                if chunk:
                    pending += b"%x\r\n%b\r\n" % (len(chunk), chunk)
                if pending:
                    wire.send(pending)
                    pending = b""
                elif wire.hung_up():
                    raise _ClientGoneError
            wire.send(pending + b"0\r\n\r\n")
        finally:
            close = getattr(reply.chunks, "close", None)
            if close is not None:
                close()


def _refusal(error: StatusError) -> Response:
    return Response(error.code, json.dumps(error.status()).encode())


class _Wire:
    """One connection's bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hung_up(self) -> bool:
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False

    def drain(self) -> None:
        """Read on for a moment: closing with unread bytes would take the reply away again."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(DRAIN_SECONDS)
            while self._socket.recv(262_144):
                pass

    def _more(self) -> None:
        data = self._socket.recv(262_144)
        if not data:
            raise _ClientGoneError
        self._buffer += data

    def _until(self, mark: bytes, limit: int) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > limit:
                raise StatusError(431, "BadRequest", "request header fields too large")
            self._more()
        found, self._buffer = self._buffer[:end], self._buffer[end + len(mark) :]
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def read_head(self) -> Head:
        try:
            return read_head(self._until(b"\r\n\r\n", HEAD_LIMIT))
        except ValueError as error:
            raise bad_request(f"malformed HTTP request: {error}") from None

    def read_body(self, head: Head) -> bytes:
        length = head.headers.get("content-length", "0")
        if "transfer-encoding" in head.headers or not length.isdigit():
            raise bad_request("malformed HTTP request: a Content-Length is needed")
        if int(length) > BODY_LIMIT:
            message = f"Request entity too large: limit is {BODY_LIMIT}"
            raise StatusError(413, "RequestEntityTooLarge", message)
        if head.headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return self._exactly(int(length))
