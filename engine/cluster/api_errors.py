"""Turn answers of the API server, and failures of the network, into the engine's errors."""

import errno
import json
import re
from typing import Any

from engine.errors import (
    AdmissionRefusedError,
    AlreadyExistsError,
    ApiError,
    BusyError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    QuotaExceededError,
    UnauthorizedError,
    UnreachableError,
)

NO_API = "is this an API server, or a proxy before it?"
_TOO_MANY = 429
_SERVER_ERROR = 500
_RBAC = re.compile(r'User "[^"]*" cannot \S+ (resource|path) ')
_NAMESPACE = re.compile(r'namespaces "([^"]+)" not found')
_MAX_RETRY_AFTER = 30.0
"""Seconds; a proxy in between may ask for hours."""
_WRITES = frozenset({"POST", "PUT", "PATCH"})


def api_error(method: str, status: int, body: str, retry_after: str | None) -> ApiError:
    """Error for a response with HTTP code `status` to a request with `method`."""
    details = _status_object(body)
    message = details.get("message") or body.strip()[:500] or f"HTTP {status}"
    reason = details.get("reason") or ""
    common: dict[str, Any] = {"status": status, "reason": reason}
    match status:
        case 400 | 403 | 422 if method in _WRITES and details.get("kind") != "Status":
            words = f"HTTP {status} is not the API server's answer: {message}"
            return BusyError(words, hint=NO_API, **common)
        case 401:
            return UnauthorizedError(message, hint="check the kubeconfig's credentials", **common)
        case 403:
            return _forbidden(method, message, common)
        case 404:
            missing = _NAMESPACE.fullmatch(message)
            hint = f"kubectl create namespace {missing[1]}" if missing else ""
            return NotFoundError(message, hint=hint, **common)
        case 409 if reason == "AlreadyExists":
            return AlreadyExistsError(message, **common)
        case 409:
            return ConflictError(message, **common)
        case 410:
            return ExpiredError(message, **common)
        case 400 | 413 | 422 if method in _WRITES:
            return AdmissionRefusedError(message, **common)
        case _ if status == _TOO_MANY or status >= _SERVER_ERROR:
            return BusyError(message, retry_after=_seconds(retry_after), **common)
        case _:
            return ApiError(message, **common)


def network_error(error: Exception, server: str) -> UnreachableError:
    """Error for a request that got no answer; says so in the words of the deepest cause."""
    deepest: BaseException = error
    while (below := deepest.__cause__ or getattr(deepest, "reason", None)) and isinstance(
        below, BaseException
    ):
        deepest = below
    if isinstance(deepest, OSError) and deepest.errno in (errno.EMFILE, errno.ENFILE):
        return UnreachableError(
            "too many open files for one more connection", hint="raise the limit: ulimit -n"
        )
    words = str(deepest).rpartition(": ")[2] or type(deepest).__name__
    return UnreachableError(
        f"no answer from the API server: {words}",
        where=server,
        hint="is it running, and is the kubeconfig the right one?",
    )


def _forbidden(method: str, message: str, common: dict[str, Any]) -> ApiError:
    if "exceeded quota" in message:
        return QuotaExceededError(message, **common)
    if "status unknown for quota" in message:
        return BusyError(message, **common)
    if method not in _WRITES or _RBAC.search(message):
        return ForbiddenError(message, hint="engine doctor lists what is missing", **common)
    return AdmissionRefusedError(message, **common)


def _status_object(body: str) -> dict[str, str]:
    """The words of a Status; what answers in a proxy's place may have other things there."""
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    return {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}


def _seconds(text: str | None) -> float:
    """Of a Retry-After in seconds; its other form, a date, is nothing that API servers send."""
    return min(float(text), _MAX_RETRY_AFTER) if text and text.isdecimal() else 0.0
