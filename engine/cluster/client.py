"""One thin client: dicts in, dicts out, our errors, and the server's clock."""

import json
import re
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from urllib3 import BaseHTTPResponse, Retry, Timeout
from urllib3.exceptions import HTTPError

from engine.cluster.api_errors import NO_API, api_error, network_error
from engine.errors import UnauthorizedError, UnreachableError
from engine.times import boottime
from engine.values import Hidden

JSON = "application/json"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
READ_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 5.0
_NO_RETRIES = Retry(total=False, redirect=False)
_UNKNOWN_ERROR = 500
_FIRST_ERROR_STATUS = 300
_CHUNK_SIZE = 65536
_SILENCE = 2.0
"""Seconds without an answer after which the wait is reported."""

_TOLERANCE = timedelta(seconds=2)
_RESOLUTION = timedelta(seconds=1)
"""A Date has no fractions."""

Query = list[tuple[str, str]]
Keep = Callable[[dict[str, Any]], Any]
_utc_now = partial(datetime.now, UTC)


class Endpoint(Hidden, frozen=True):
    """One API server, with the credentials of one reading of the kubeconfig."""

    server: str
    """Its URL, for messages."""
    open: Callable[..., BaseHTTPResponse]
    """Sends one request, as `urllib3.HTTPConnectionPool.urlopen` does."""
    root: str = ""
    """What goes before each path."""
    headers: Mapping[str, str] = {}


class Client:
    """Requests to one API server.

    Guarantees: safe to use from several threads; a failure is one of `engine.errors`.
    Assumptions: the pool has room for every worker and watch.
    Errors: ApiError and its kinds for answers, UnreachableError for none.
    """

    def __init__(
        self, find_endpoint: Callable[[], Endpoint], on_silence: Callable[[str], object] = str
    ) -> None:
        """`find_endpoint` reads the credentials; it is asked again when they have expired.

        `on_silence` is called once if the server takes long for its first answer.
        """
        self._find_endpoint = find_endpoint
        self._endpoint = find_endpoint()
        self._renewed = threading.Lock()
        self._counted = threading.Lock()
        self.requests = 0
        self.server = self._endpoint.server
        self._clock = ServerClock()
        words = f"waiting for {self.server}: no answer for {_SILENCE:g}s"
        self._silence = threading.Timer(_SILENCE, on_silence, [words])
        self._silence.daemon = True

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
        accept: str = JSON,
        timeout: float | None = None,
        keep: Keep | None = None,
    ) -> dict[str, Any]:
        """The JSON object that the server answers with, in all within `timeout` seconds.

        With `keep` the items of a list are what it makes of each; one that it makes None of is left
        out. They are decoded one by one, so that no more is held than is kept, and the server may
        send them in gzip, a twentieth of the bytes.
        """
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = JSON
        if method == "PATCH":
            headers["Content-Type"] = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        if keep is not None:
            headers["Accept-Encoding"] = "gzip"
        limit = Timeout(connect=_CONNECT_TIMEOUT, read=READ_TIMEOUT, total=timeout)
        response = self._send(method, path, query, headers, limit, body)
        items, text = list[Any](), None
        try:
            if keep is not None:
                items, text = _split_items(response.stream(_CHUNK_SIZE, decode_content=True), keep)
            answer = json.loads(response.data if text is None else text)
        except HTTPError as error:
            raise network_error(error, self.server) from error
        except ValueError:
            raise self.not_an_api("is not JSON") from None
        finally:
            response.close()
        if not isinstance(answer, dict):
            raise self.not_an_api("is no JSON object")
        return {**answer, "items": items} if items else answer

    def not_an_api(self, what: str) -> UnreachableError:
        """Error for an answer that no API server gives, and a proxy or a login page may."""
        return UnreachableError(f"the answer {what}", where=self.server, hint=NO_API)

    def stream(self, path: str, query: Query, timeout: float) -> "WatchStream":
        """An open watch; `timeout` is how many seconds of silence break it."""
        limit = Timeout(connect=_CONNECT_TIMEOUT, read=timeout)
        return WatchStream(self._send("GET", path, query, {"Accept": JSON}, limit), self.server)

    def download(
        self, path: str, query: Query, *, timeout: float = READ_TIMEOUT
    ) -> Iterator[bytes]:
        """The body, piece by piece and as it is: a log is no JSON.

        `timeout` is how many seconds of silence end it. Errors: those of a refusal at once,
        UnreachableError while it is read.
        """
        limit = Timeout(connect=_CONNECT_TIMEOUT, read=timeout)
        return self._pieces(self._send("GET", path, query, {"Accept": "*/*"}, limit))

    def _pieces(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            yield from response.stream(_CHUNK_SIZE)
        except (HTTPError, OSError) as error:
            raise network_error(error, self.server) from error
        finally:
            response.release_conn()

    def _send(self, *request: Any) -> BaseHTTPResponse:
        """One exchange; once more with fresh credentials if the server calls ours expired."""
        used = self._endpoint
        try:
            return self._exchange(used, *request)
        except UnauthorizedError:
            # Once for all the threads that met the same refusal.
            with self._renewed:
                if self._endpoint is used:
                    self._endpoint = self._find_endpoint()
        return self._exchange(self._endpoint, *request)

    def _exchange(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        query: Query | None,
        headers: Mapping[str, str],
        timeout: Timeout,
        body: Any = None,
    ) -> BaseHTTPResponse:
        with self._counted:
            self.requests += 1
            is_first = self.requests == 1
        if is_first:
            self._silence.start()
        began = boottime()
        try:
            response = endpoint.open(
                method,
                f"{endpoint.root}{path}{f'?{urlencode(query)}' if query else ''}",
                body=None if body is None else json.dumps(body).encode(),
                headers={**endpoint.headers, **headers},
                timeout=timeout,
                preload_content=False,
                redirect=False,
                retries=_NO_RETRIES,
            )
            self._clock.update(response.headers.get("Date"), began)
            if response.status < _FIRST_ERROR_STATUS:
                return response
            text = response.data.decode(errors="replace")
        except (HTTPError, OSError) as error:
            raise network_error(error, self.server) from error
        finally:
            self._silence.cancel()
        raise api_error(method, response.status, text, response.headers.get("Retry-After"))


_ITEMS = re.compile(r'"items":\s*\[\s*(?={)')
_NEXT_ITEM = re.compile(r"[\s,]*(?={)")
_decode_json = json.JSONDecoder().raw_decode


def _split_items(chunks: Iterable[bytes], keep: Keep) -> tuple[list[Any], str]:
    """What `keep` makes of the items of a list, and the text of the list without them.

    Errors: ValueError for what is not UTF-8.
    """
    decode = getincrementaldecoder("utf-8")().decode
    head, text, enough, items = "", "", 0, list[Any]()
    for chunk in chunks:
        text += decode(chunk)
        if not head and (begin := _ITEMS.search(text)) is not None:
            head, text = text[: begin.end()], text[begin.end() :]
        if head and len(text) >= enough:
            # An item that isn't there as a whole is tried again once there is much more of it.
            text = _take_items(text, keep, items)
            enough = 2 * len(text)
    return items, head + (_take_items(text, keep, items) if head else text)


def _take_items(text: str, keep: Keep, items: list[Any]) -> str:
    """The text after the items that it begins with."""
    at = 0
    while (begin := _NEXT_ITEM.match(text, at)) is not None:
        at = begin.end()
        try:
            item, at = _decode_json(text, at)
        except ValueError:
            break
        if (kept := keep(item)) is not None:
            items.append(kept)
    return text[at:]


class ServerClock:
    """Our own time at an answer whose Date agrees within 2 s, else that Date; and on from there
    by a clock that can't be set.

    Guarantees: safe to use from several threads.
    """

    def __init__(
        self,
        wall_clock: Callable[[], datetime] = _utc_now,
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
                for line in filter(bytes.strip, lines):
                    event = json.loads(line)
                    if event.get("type") == "ERROR":
                        status = event.get("object") or {}
                        code = status.get("code") or _UNKNOWN_ERROR
                        raise api_error("GET", code, json.dumps(status), None)
                    yield event
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._is_closed:
                raise network_error(error, self._server) from error
        finally:
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
