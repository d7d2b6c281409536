"""The server's front: every request passes the same gates, and none of them brings it down."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from engine.sandbox.api import openapi
from engine.sandbox.api import query as queries
from engine.sandbox.api.access import Access, user_of
from engine.sandbox.api.discovery import REVIEW_PATH, discover
from engine.sandbox.api.handlers import Call, Handlers
from engine.sandbox.api.routing import Target, route
from engine.sandbox.errors import StatusError, no_such_resource
from engine.sandbox.faults import DropConnection, Effect, Faults, Latency, LostReply, refusal
from engine.sandbox.http_server import HangUp, Reply, Request, Response
from engine.sandbox.request_log import LoggedRequest, RequestLog
from engine.sandbox.store import encode

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.values import Json

_log = logging.getLogger("engine.sandbox")
_HEALTH = ("/healthz", "/livez", "/readyz")


class ApiServer:
    """Gates, in order: documents, routing, faults, access, the verb, lost replies, the log."""

    def __init__(
        self,
        context: Context,
        handlers: Handlers,
        access: Access,
        faults: Faults,
        request_log: RequestLog,
    ) -> None:
        self._context = context
        self._handlers = handlers
        self._access = access
        self._faults = faults
        self._request_log = request_log

    def handle(self, request: Request) -> Reply:
        """Answer one request. Never raises: a failure of the sandbox itself is a 500 Status."""
        target: Target | None = None
        name = ""
        try:
            document = self._document(request)
            if document is not None:
                reply = document
            else:
                target = route(request, self._context)
                body = self._body(request, target)
                name = target.name or _name_in(body)
                reply = self._answer(request, target, name, body)
        except StatusError as error:
            reply = refused(error)
        except Exception:  # noqa: BLE001 - a bug must not end the server
            _log.exception("sandbox: %s %s failed", request.method, request.path)
            reply = refused(StatusError(500, "InternalError", "the sandbox failed", {}))
        self._note(request, target, name, reply)
        return reply

    def _document(self, request: Request) -> Reply | None:
        """Whatever isn't about objects: health, discovery, OpenAPI, access reviews."""
        path = request.path
        if request.method == "POST":
            return self._review(request) if path == REVIEW_PATH else None
        if request.method not in ("GET", "HEAD"):
            return None
        if path.startswith(_HEALTH):
            return Response(200, b"ok", "text/plain; charset=utf-8")
        if path == "/openapi/v3":
            return Response(200, openapi.index())
        if path.startswith("/openapi/v3/"):
            found = openapi.document(path.removeprefix("/openapi/v3/"))
            if found is None:
                raise no_such_resource()
            return Response(200, found)
        document = discover(self._context, path)
        return Response(200, encode(document)) if document is not None else None

    def _review(self, request: Request) -> Reply:
        body = queries.read_object(request, "SelfSubjectAccessReview")
        spec = body if isinstance(body, dict) else {}
        return Response(201, encode(self._access.review(spec, user_of(request))))

    def _body(self, request: Request, target: Target) -> Json:
        if target.verb in ("create", "update"):
            return queries.read_object(request, target.kind.kind)
        if target.verb == "patch":
            return queries.read_json(request.body)
        return None

    def _answer(self, request: Request, target: Target, name: str, body: Json) -> Reply:
        effects = self._effects(target, name)
        for effect in effects:
            if isinstance(effect, Latency):
                time.sleep(effect.seconds)
            elif isinstance(effect, DropConnection):
                return HangUp("connection dropped")
            elif (
                error := refusal(effect, target.kind.group, target.kind.resource, name)
            ) is not None:
                raise error
        user = user_of(request)
        kind = target.kind
        self._access.check(
            target.verb, kind.group, target.resource, target.namespace, target.name, user
        )
        reply = self._handlers.answer(Call(request, target, user, body, effects))
        for lost in (effect for effect in effects if isinstance(effect, LostReply)):
            if not lost.code:
                return HangUp("reply lost")
            raise StatusError(lost.code, "Timeout", "etcdserver: request timed out", {})
        return reply

    def _effects(self, target: Target, name: str) -> list[Effect]:
        if not self._faults:
            return []
        return self._faults.effects(target.verb, target.resource, target.namespace or "", name)

    def _note(self, request: Request, target: Target | None, name: str, reply: Reply) -> None:
        code = 0 if isinstance(reply, HangUp) else reply.code
        self._request_log.add(
            LoggedRequest(
                target.verb if target else request.method.lower(),
                request.path,
                target.resource if target else "",
                (target.namespace or "") if target else "",
                name,
                request.user_agent,
                code,
                self._context.clock.now(),
                "dryRun" in request.query
                or (request.method == "DELETE" and b'"dryRun"' in request.body),
                request.query.get("fieldValidation") == "Strict",
            )
        )


def refused(error: StatusError) -> Response:
    """The error as a Status with its headers."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after is not None:
        headers = (("Retry-After", str(error.retry_after)),)
    return Response(error.code, encode(error.status()), headers=headers)


def _name_in(body: Json) -> str:
    """The name of the object to be created; "" where the body has none."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
