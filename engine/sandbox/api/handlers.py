"""One routed request to one verb, and the verb's result to a reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import errors
from engine.sandbox.api import protobuf
from engine.sandbox.api import query as queries
from engine.sandbox.faults import DropWatch, Effect, ExpireWatch
from engine.sandbox.http_server import Reply, Request, Response, Stream
from engine.sandbox.schema.decode import read_body
from engine.sandbox.store import Entry, encode
from engine.sandbox.verbs import lists, patching
from engine.sandbox.verbs.create import create
from engine.sandbox.verbs.delete import delete
from engine.sandbox.verbs.table import table
from engine.sandbox.verbs.update import update
from engine.sandbox.verbs.views import view_of, wanted_form
from engine.sandbox.verbs.watch import WatchHub, WatchQuery

if TYPE_CHECKING:
    from engine.sandbox.api.routing import Target
    from engine.sandbox.context import Context, Options
    from engine.sandbox.node.subresources import PodSubresources
    from engine.sandbox.values import Json, Obj

_READ = ("application/json", protobuf.MEDIA_TYPE, "")
_CREATED, _OK = 201, 200


@dataclass(frozen=True, slots=True)
class Call:
    """A request with everything that was found out about it."""

    request: Request
    target: Target
    user: str
    body: Json
    effects: list[Effect]


class Handlers:
    """The verbs, as HTTP sees them."""

    def __init__(self, context: Context, hub: WatchHub, pods: PodSubresources) -> None:
        self._context = context
        self._hub = hub
        self._pods = pods

    def answer(self, call: Call) -> Reply:
        """Carry out the call's verb. Errors: StatusError."""
        handler = getattr(self, f"_{call.target.verb}")
        reply: Reply = handler(call)
        return reply

    def _get(self, call: Call) -> Reply:
        target = call.target
        entry = self._context.storage.get(target.kind, target.namespace or "", target.name)
        if entry is None:
            raise errors.not_found(target.kind.group, target.kind.resource, target.name)
        if target.subresource == "log":
            return Stream(self._pods.logs(entry, call.request.query), "text/plain")
        return self._one(call, entry)

    def _list(self, call: Call) -> Reply:
        target, query = call.target, call.request.query
        match = lists.selection(
            target.kind, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        wanted = lists.ListQuery(
            match,
            queries.number(call.request, "limit"),
            query.get("continue", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
        )
        page = lists.list_page(self._context, target.kind, target.namespace, wanted)
        form = self._form(call)
        if form == "Table":
            meta: Obj = {"resourceVersion": str(page.rv)}
            if page.token:
                meta["continue"] = page.token
            return Response(_OK, table(self._context, target.kind, page.entries, meta))
        as_kind = ("meta.k8s.io/v1", "PartialObjectMetadataList") if form else None
        items = map(view_of(form), page.entries)
        return Response(_OK, lists.render(target.kind, items, page, as_kind=as_kind))

    def _watch(self, call: Call) -> Reply:
        target, query = call.target, call.request.query
        match = lists.selection(
            target.kind, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        drop = next((e.after_events for e in call.effects if isinstance(e, DropWatch)), None)
        version = query.get("resourceVersion", "")
        if any(isinstance(effect, ExpireWatch) for effect in call.effects):
            self._context.storage.compact(target.kind)
            version = "1"
        wanted = WatchQuery(
            target.namespace,
            match,
            version,
            queries.number(call.request, "timeoutSeconds"),
            query.get("allowWatchBookmarks") in ("true", "1"),
            query.get("sendInitialEvents") in ("true", "1"),
            self._form(call),
            drop,
        )
        return Stream(self._hub.stream(target.kind, wanted))

    def _create(self, call: Call) -> Reply:
        target = call.target
        namespace = target.namespace or ""
        if target.subresource:
            body = call.body if isinstance(call.body, dict) else {}
            act = self._pods.bind if target.subresource == "binding" else self._pods.evict
            act(namespace, target.name, body)
            return Response(_CREATED, encode(_success({})))
        options = queries.write_options(call.request, call.user)
        obj = self._read(call, options)
        entry = create(self._context, target.kind, namespace, obj, options)
        return self._one(call, entry, _CREATED, options)

    def _update(self, call: Call) -> Reply:
        target = call.target
        options = queries.write_options(call.request, call.user)
        obj = self._read(call, options)
        sub = "status" if target.subresource == "status" else ""
        entry = update(
            self._context,
            target.kind,
            target.namespace or "",
            target.name,
            lambda _: obj,
            options,
            subresource=sub,
        )
        return self._one(call, entry, options=options)

    def _patch(self, call: Call) -> Reply:
        target, options = call.target, queries.write_options(call.request, call.user)
        where = (self._context, target.kind, target.namespace or "", target.name)
        content_type = _content_type(call.request)
        if content_type not in patching.FORMATS:
            raise _unsupported(patching.FORMATS)
        entry = patching.patch(*where, content_type, call.body, options, target.subresource)
        return self._one(call, entry, options=options)

    def _delete(self, call: Call) -> Reply:
        target = call.target
        options = queries.delete_options(call.request)
        entry, gone = delete(
            self._context, target.kind, target.namespace or "", target.name, options
        )
        if not gone or target.kind.returns_deleted:
            return self._one(call, entry)
        details = {"name": entry.name, "kind": target.kind.resource, "uid": entry.uid}
        if target.kind.group:
            details["group"] = target.kind.group
        return Response(_OK, encode(_success({"details": details})))

    def _deletecollection(self, call: Call) -> Reply:
        target, query = call.target, call.request.query
        options = queries.delete_options(call.request)
        match = lists.selection(
            target.kind, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        page = lists.list_page(self._context, target.kind, target.namespace, lists.ListQuery(match))
        deleted = [
            delete(self._context, target.kind, *entry.key, options)[0]
            for entry in page.entries
            if self._context.storage.get(target.kind, *entry.key) is not None
        ]
        done = lists.Page(deleted, self._context.storage.rv)
        items = map(view_of(""), deleted)
        return Response(_OK, lists.render(target.kind, items, done, as_kind=None))

    def _read(self, call: Call, options: Options) -> Obj:
        if _content_type(call.request) not in _READ:
            raise _unsupported(_READ[:2])
        return read_body(self._context, call.target.kind, call.body, options)

    def _form(self, call: Call) -> str:
        return wanted_form(call.request.headers.get("accept", ""))

    def _one(
        self, call: Call, entry: Entry, code: int = _OK, options: Options | None = None
    ) -> Response:
        form = self._form(call)
        warnings = options.warnings if options else ()
        headers = tuple(("Warning", f'299 - "{_quoted(text)}"') for text in warnings)
        if form == "Table":
            meta = {"resourceVersion": str(entry.rv)}
            raw = table(self._context, call.target.kind, [entry], meta)
            return Response(code, raw, headers=headers)
        return Response(code, view_of(form)(entry), headers=headers)


def _success(more: Obj) -> Obj:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", **more}


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _unsupported(accepted: tuple[str, ...]) -> errors.StatusError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return errors.StatusError(415, "UnsupportedMediaType", message)
