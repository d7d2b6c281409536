"""The options in a request's query and body, read and checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.sandbox.api import protobuf
from engine.sandbox.context import Options
from engine.sandbox.errors import bad_request, field_unsupported, invalid
from engine.sandbox.verbs.delete import DeleteOptions

if TYPE_CHECKING:
    from engine.sandbox.http_server import Request
    from engine.sandbox.values import Json, Obj

_MANAGER_LENGTH = 128


def is_dry_run(values: str | list[str] | None) -> bool:
    """Whether nothing is to be kept. Errors: 422 for another value than All."""
    given = [values] if isinstance(values, str) else values or []
    if any(value != "All" for value in given):
        found = field_unsupported("dryRun", given, ("All",))
        raise invalid("meta.k8s.io", "WriteOptions", "", [found])
    return bool(given)


def write_options(request: Request, user: str) -> Options:
    """What the query says of a write."""
    query = request.query
    manager = query.get("fieldManager") or request.user_agent.partition("/")[0]
    return Options(
        manager=manager[:_MANAGER_LENGTH] or "unknown",
        dry_run=is_dry_run(query.get("dryRun")),
        validation=query.get("fieldValidation") or "Warn",
        user=user,
    )


def read_object(request: Request, kind: str = "an object") -> Json:
    """A body as the client's media type says. Errors: 400; 415."""
    if request.headers.get("content-type", "").startswith(protobuf.MEDIA_TYPE):
        return protobuf.read_protobuf(request.body)
    return read_json(request.body, kind)


def read_json(body: bytes, kind: str = "an object") -> Json:
    """Errors: 400 for what is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get "
            f"version/kind; json parse error: {error}"
        ) from None


def delete_options(request: Request) -> DeleteOptions:
    """From the body, if there is one, else from the query."""
    body: Obj = read_object(request, "DeleteOptions") if request.body else {}
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions: an object is needed")
    query = request.query
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    if not propagation and orphan is not None:
        propagation = "Orphan" if str(orphan).lower() == "true" else "Background"
    if propagation not in ("", "Background", "Foreground", "Orphan"):
        allowed = ("Foreground", "Background", "Orphan", "nil")
        found = field_unsupported("propagationPolicy", propagation, allowed)
        raise invalid("meta.k8s.io", "DeleteOptions", "", [found])
    preconditions = body.get("preconditions") or {}
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise bad_request(f"gracePeriodSeconds: not a number: {grace}") from None
    return DeleteOptions(
        grace=seconds,
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        propagation=propagation,
        dry_run=is_dry_run(body.get("dryRun") or query.get("dryRun")),
    )


def number(request: Request, name: str) -> int:
    """A whole number of the query, 0 where it has none. Errors: 400."""
    text = request.query.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        message = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise bad_request(message) from None
