"""One thin client: dicts in, dicts out, our errors, and the server's clock."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from engine.cluster.api_errors import NO_API, api_error, network_error
from engine.errors import ExpiredError, UnauthorizedError, UnreachableError
from engine.times import boottime

if TYPE_CHECKING:
    from engine.cluster.connect import Transport

JSON = "application/json"
READ_TIMEOUT = 30.0
_GONE = 410
_FIRST_ERROR_STATUS = 300
_CHUNK_SIZE = 65536
_SILENCE = 2.0
"""Seconds without an answer after which the wait is reported."""

_TOLERANCE = timedelta(seconds=2)
_RESOLUTION = timedelta(seconds=1)
"""A Date has no fractions."""

Query = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `timeout` is how many seconds of silence end it, `total` how many in all."""

    method: str
    path: str
    body: Any
    query: Query
    content_type: str = JSON
    accept: str = JSON
    timeout: float = READ_TIMEOUT
    total: float | None = None


class Client:
    """Requests to one API server.

    Guarantees: safe to use from several threads; a failure is one of `engine.errors`.
    Assumptions: the pool has room for every worker and watch.
    Errors: ApiError and its kinds for answers, UnreachableError for none.
    """

    def __init__(
        self,
        transport_factory: Callable[[], "Transport"],
        on_silence: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`transport_factory` reads the credentials; it is asked again when they have expired.

        `on_silence` is called once if the server takes long for its first answer.
        """
        self._on_silence = on_silence
        self._was_heard = False
        self._transport_factory = transport_factory
        self._transport = transport_factory()
        self._renewed = threading.Lock()
        self.requests = 0
        self.server: str = self._transport.server
        self._clock = ServerClock()

    def now(self) -> datetime:
        """The server's time by its Date headers; ours if they agree within 2 s."""
        return self._clock.now()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Query | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """The JSON object that the server answers with, in all within `timeout` seconds."""
        wanted = Request(method, path, body, query or [], content_type, accept, total=timeout)
        response = self._send(wanted)
        try:
            data = response.data
        except HTTPError as error:
            raise network_error(error, self.server) from error
        try:
            answer = json.loads(data)
        except ValueError:
            raise self.not_an_api("is not JSON") from None
        if not isinstance(answer, dict):
            raise self.not_an_api("is no JSON object")
        return answer

    def not_an_api(self, what: str) -> UnreachableError:
        """Error for an answer that no API server gives, and a proxy or a login page may."""
        return UnreachableError(f"the answer {what}", where=self.server, hint=NO_API)

    def stream(
        self, path: str, query: Query, timeout: float, *, accept: str = JSON
    ) -> "WatchStream":
        """An open watch; `timeout` is how many seconds of silence break it."""
        response = self._send(Request("GET", path, None, query, accept=accept, timeout=timeout))
        return WatchStream(response, self.server)

    def download(
        self, path: str, query: Query, *, timeout: float = READ_TIMEOUT
    ) -> Iterator[bytes]:
        """The body, piece by piece and as it is: a log is no JSON.

        `timeout` is how many seconds of silence end it. Errors: those of a refusal at once,
        UnreachableError while it is read.
        """
        return self._pieces(
            self._send(Request("GET", path, None, query, accept="*/*", timeout=timeout))
        )

    def _pieces(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            yield from response.stream(_CHUNK_SIZE)
        except (HTTPError, OSError) as error:
            raise network_error(error, self.server) from error
        finally:
            response.release_conn()

    def _send(self, request: Request) -> BaseHTTPResponse:
        """One exchange; once more with fresh credentials if the server calls ours expired."""
        transport = self._transport
        try:
            return self._send_once(transport, request)
        except UnauthorizedError:
            self._renew(transport)
        return self._send_once(self._transport, request)

    def _renew(self, used: "Transport") -> None:
        """Read the credentials again, once for all the threads that met the same refusal."""
        with self._renewed:
            if self._transport is used:
                self._transport = self._transport_factory()

    def _send_once(self, transport: "Transport", request: Request) -> BaseHTTPResponse:
        self.requests += 1
        began = boottime()
        try:
            with self._tell_of_silence():
                response = transport.send(request)
            self._clock.update(response.headers.get("Date"), began)
            if response.status < _FIRST_ERROR_STATUS:
                return response
            text = response.data.decode(errors="replace")
        except (HTTPError, OSError) as error:
            raise network_error(error, self.server) from error
        raise api_error(request.method, response.status, text, response.headers.get("Retry-After"))

    @contextmanager
    def _tell_of_silence(self) -> Iterator[None]:
        """For the first exchange alone: later ones have retries and reports of their own."""
        if self._was_heard:
            yield
            return
        self._was_heard = True
        words = f"waiting for {self.server}: no answer for {_SILENCE:g}s"
        timer = threading.Timer(_SILENCE, self._on_silence, [words])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class ServerClock:
    """Our own time at an answer whose Date agrees within 2 s, else that Date; and on from there
    by a clock that can't be set.

    Guarantees: safe to use from several threads.
    """

    def __init__(
        self,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        boottime: Callable[[], float] = boottime,
    ) -> None:
        self._wall_clock = wall_clock
        self._boottime = boottime
        self._known = wall_clock(), boottime()
        """The server's time, and when that was."""
        self._date = ""

    def now(self) -> datetime:
        """The server's time."""
        time, at = self._known
        return time + timedelta(seconds=self._boottime() - at)

    def update(self, date: str | None, asked_at: float) -> None:
        """An answer came with this Date header, to a request that began at `asked_at`.

        The answer may have been on its way all that time, longest where the machine slept.
        Errors: none; a header that is no date is ignored.
        """
        if not date or date == self._date:
            return
        self._date = date
        try:
            earliest = parsedate_to_datetime(date)
        except (ValueError, TypeError):
            return
        if earliest.tzinfo is None:
            return
        ours, now = self._wall_clock(), self._boottime()
        took = timedelta(seconds=now - asked_at)
        if -_TOLERANCE <= ours - earliest <= took + _TOLERANCE:
            self._known = ours, now
        elif not timedelta() <= self.now() - earliest <= took + _RESOLUTION:
            self._known = earliest, now


class WatchStream:
    """Events of one watch, until it ends, breaks, or is closed from another thread."""

    def __init__(self, response: Any, server: str) -> None:
        self._response = response
        self._server = server
        self._is_closed = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Errors: ExpiredError when the version is too old, UnreachableError when it breaks."""
        rest = b""
        try:
            for chunk in self._response.stream(decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield _event(json.loads(line))
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._is_closed:
                raise network_error(error, self._server) from error
        finally:
            self._response.close()

    def discard(self) -> None:
        """Close a watch that was never read."""
        self._response.close()

    def close(self) -> None:
        """Wake up a reader that waits in another thread, which then closes the connection."""
        self._is_closed = True
        shutdown = getattr(self._response, "shutdown", None)
        try:
            if shutdown is not None:
                shutdown()
        except (OSError, ValueError, RuntimeError):
            self._response.close()


def _event(event: dict[str, Any]) -> dict[str, Any]:
    if event.get("type") == "ERROR":
        status = event.get("object") or {}
        if status.get("code") == _GONE:
            raise ExpiredError(status.get("message", "expired"), status=_GONE, reason="Expired")
        raise api_error("GET", status.get("code") or 500, json.dumps(status), None)
    return event
