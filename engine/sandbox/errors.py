"""What goes wrong: a Kubernetes ``Status`` for a client, one line for who runs the sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.sandbox.values import Obj


class SandboxError(EngineError):
    """The sandbox can't be set up as asked: a port in use, a malformed scenario."""

    exit_code = ExitCode.INVALID


class StatusError(Exception):
    """A refusal in the API server's own form: code, reason, message and details."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Obj | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Obj:
        """The Status object of the reply."""
        body: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = dict(self.details)
        if self.retry_after is not None:
            body.setdefault("details", {})["retryAfterSeconds"] = self.retry_after
        body["code"] = self.code
        return body


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refused field, in the words of Kubernetes' field.Error."""

    path: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def shown(value: object) -> str:
    """A value as field.Error shows it: strings quoted, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def field_invalid(path: str, value: object, why: str) -> FieldError:
    """A value that is forbidden there."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def field_required(path: str, why: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError(path, "FieldValueRequired", "Required value" + (f": {why}" if why else ""))


def field_forbidden(path: str, why: str) -> FieldError:
    """A field that may not be set, or not be changed."""
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {why}")


def field_duplicate(path: str, value: object) -> FieldError:
    """A value that occurs twice."""
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def field_missing(path: str, value: object) -> FieldError:
    """A value that names something which isn't there."""
    return FieldError(path, "FieldValueNotFound", f"Not found: {shown(value)}")


def field_unsupported(path: str, value: object, allowed: Sequence[str]) -> FieldError:
    """A value that is none of those allowed."""
    names = ", ".join(shown(name) for name in allowed)
    text = f"Unsupported value: {shown(value)}: supported values: {names}"
    return FieldError(path, "FieldValueNotSupported", text)


def field_too_long(path: str, most: int) -> FieldError:
    """A value of too many bytes."""
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def _details(group: str, resource: str, name: str) -> Obj:
    details: Obj = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = resource
    return details


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    """404: no object of this name."""
    message = f'{_qualified(group, resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(group, resource, name))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    """409: an object of this name is there."""
    message = f'{_qualified(group, resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    """409: the object has changed, or a precondition doesn't hold."""
    message = f'Operation cannot be fulfilled on {_qualified(group, resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(group, resource, name))


def forbidden(
    group: str, resource: str, name: str, why: str, causes: list[dict[str, str]] | None = None
) -> StatusError:
    """403: access, admission or a quota says no."""
    subject = f'{_qualified(group, resource)} "{name}"' if name else _qualified(group, resource)
    details = _details(group, resource, name)
    if causes:
        details["causes"] = causes
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422: these fields are wrong."""
    texts = [str(error) for error in errors]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(group, kind, name)
    details["causes"] = [
        {"reason": error.reason, "message": error.text, "field": error.path} for error in errors
    ]
    qualified = f"{kind}.{group}" if group else kind
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> StatusError:
    """400: the request can't be understood."""
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    """410: the version is forgotten."""
    return StatusError(410, "Expired", message)


def no_such_resource() -> StatusError:
    """404: there is no such path."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, {})


def method_not_allowed() -> StatusError:
    """405: the path has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})
