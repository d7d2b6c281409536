"""Answer probes and scrapes over HTTP: /healthz, /readyz, /metrics."""

import threading
from collections.abc import Callable, Mapping
from functools import partial

from engine.errors import UsageError
from engine.telemetry.http_server import Address, Response, Server, parse_address
from engine.telemetry.metrics import Metrics
from engine.telemetry.redact import REDACTOR

_TEXT = "text/plain; charset=utf-8"
_OK, _NOT_FOUND, _BROKEN, _NOT_NOW = 200, 404, 500, 503


class HealthServer:
    """Serves what its callables say at the moment of the request.

    `checks` returns the reason why each check fails, "" for one that passes; `alive` the same for
    the process as a whole; `remarks` what is to be said although it is ready. All are called from
    the server's thread and have to be quick.
    Guarantees: a slow client keeps no other waiting, nor do many of them or those that want metrics
    keep a probe; nothing that is served holds a known secret.
    Errors: UsageError for an address that can't be parsed, and from `start` for one that can't
    be listened on.
    """

    def __init__(
        self,
        address: str,
        checks: Callable[[], Mapping[str, str]],
        alive: Callable[[], str],
        metrics: Metrics | None,
        remarks: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._wanted = parse_address(address)
        self._checks = checks
        self._alive = alive
        self._metrics = metrics
        self._remarks = remarks
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; before `start` the one that was asked for."""
        return self._server.port if self._server is not None else self._wanted.port

    @property
    def url(self) -> str:
        """Where a client of this machine finds the server."""
        return Address(self._wanted.host, self.port).url

    def start(self) -> None:
        """Listen, and answer from a thread of its own."""
        if self._server is not None:
            return
        try:
            self._server = Server(self._wanted, self._answer)
        except OSError as error:
            words = (error.strerror or str(error)).partition(" (")[0]
            raise UsageError(
                f"can't listen here: {words.lower()}",
                where=str(self._wanted),
                hint="choose another --metrics-address, or port 0 for any that is free",
            ) from error
        self._thread = threading.Thread(target=self._server.serve, name="health", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Free the port and cut the connections that are still open; takes less than a second."""
        server, self._server = self._server, None
        if server is None:
            return
        server.stop()
        if self._thread is not None:
            self._thread.join(1.0)

    def _answer(self, path: str, accept: str) -> Response | Callable[[], Response]:
        match path:
            case "/healthz":
                reason = _alive(self._alive)
                return _text(_NOT_NOW, REDACTOR(reason)) if reason else _text(_OK, "ok")
            case "/readyz":
                return _ready(self._checks, self._remarks)
            case "/metrics" if self._metrics is not None:
                return partial(_exposition, self._metrics, accept)
            case _:
                return _text(_NOT_FOUND, "not found: there are /healthz, /readyz and /metrics")


def _exposition(metrics: Metrics, accept: str) -> Response:
    content_type, content = metrics.exposition(accept)
    return Response(_OK, content_type, content)


def _alive(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - a probe is answered, whatever happens
        return f"the check failed: {type(error).__name__}"


def _ready(
    ask: Callable[[], Mapping[str, str]], ask_remarks: Callable[[], Mapping[str, str]]
) -> Response:
    try:
        reasons, remarks = ask(), ask_remarks()
    except Exception as error:  # noqa: BLE001 - a probe is answered, whatever happens
        return _text(_NOT_NOW, f"the checks failed: {type(error).__name__}")
    lines = [
        f"[-]{name}: {REDACTOR(reason)}" if reason else f"[+]{name} ok"
        for name, reason in reasons.items()
    ]
    lines += [f"[+]{name}: {REDACTOR(words)}" for name, words in remarks.items() if words]
    failing = any(reasons.values())
    return _text(_NOT_NOW if failing else _OK, "\n".join(lines) or "ok")


def _text(status: int, text: str) -> Response:
    return Response(status, _TEXT, f"{text}\n".encode(errors="backslashreplace"))
