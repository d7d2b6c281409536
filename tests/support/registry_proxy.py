"""A registry in front of another one: as slow, or as busy, as a test wants it, and with a log."""

import http.client
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

_TLS = b"\x16"
"""The first byte of a handshake."""
_BUSY = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "later"}]}'
_OF_A_CONNECTION = {"host", "connection", "date", "server", "content-length"}


class RegistryProxy:
    """Listens on loopback, and passes on the GET and HEAD requests that it gets."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.blob_time = 0.0
        """For how many seconds the first blob keeps a client waiting."""
        self.busy_until = 0.0
        """Until then, as `time.time()` says, the answer is 429."""
        self.log: list[tuple[float, str, int]] = []
        """Time, path and status of each reply."""
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.host = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: RegistryProxy

    def handle_one_request(self) -> None:
        """A client that tries TLS first is to see that this is HTTP, as from a server in Go."""
        if self.rfile.peek(1)[:1] == _TLS:  # type: ignore[attr-defined]
            self.wfile.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        else:
            super().handle_one_request()

    def do_GET(self) -> None:
        """Each connection has one request."""
        proxy = self.proxy
        if time.time() < proxy.busy_until:
            self._reply(HTTPStatus.TOO_MANY_REQUESTS, (), _BUSY, str(len(_BUSY)))
            return
        if "/blobs/" in self.path and not any("/blobs/" in path for _, path, _ in proxy.log):
            time.sleep(proxy.blob_time)
        connection = http.client.HTTPConnection(proxy.upstream, timeout=30)
        sent = {k: v for k, v in self.headers.items() if k.lower() not in _OF_A_CONNECTION}
        connection.request(self.command, self.path, headers=sent)
        reply = connection.getresponse()
        length, body = reply.headers["Content-Length"], reply.read()
        connection.close()
        self._reply(reply.status, reply.getheaders(), body, length or str(len(body)))

    do_HEAD = do_GET  # noqa: N815 - as the server looks it up

    def _reply(
        self, status: int, headers: Sequence[tuple[str, str]], body: bytes, length: str
    ) -> None:
        self.proxy.log.append((time.time(), self.path, status))
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _OF_A_CONNECTION:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""
