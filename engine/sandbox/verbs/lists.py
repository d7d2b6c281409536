"""list: one consistent view, in pages when asked, as whole objects, metadata or a table."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import errors, selectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.selectors import Match
    from engine.sandbox.store import Entry

_FORMAT = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a list's query asks for."""

    match: Match | None = None
    limit: int = 0
    token: str = ""
    resource_version: str = ""
    version_match: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, the version of the list, and the token of the next page."""

    entries: Sequence[Entry]
    rv: int
    token: str = ""
    remaining: int | None = None


def selection(kind: Kind, label_text: str, field_text: str) -> Match | None:
    """What a list's selectors leave; None when there are none. Errors: 400."""
    return selectors.both(selectors.labels(label_text), selectors.fields(field_text, kind.resource))


def list_page(context: Context, kind: Kind, namespace: str | None, query: ListQuery) -> Page:
    """Errors: 400 a token that can't be read; 410 one whose version is forgotten."""
    with context.storage.lock:
        if query.token:
            rv, after = _read_token(query.token)
            held = context.storage.snapshot(kind, rv)
            if held is None:
                raise _expired_token()
            entries = [entry for entry in held if entry.key > after]
            if namespace is not None:
                entries = [entry for entry in entries if entry.namespace == namespace]
        else:
            rv, entries = context.storage.rv, context.storage.entries(kind, namespace)
            _check_version(query, rv)
            if query.limit and len(entries) > query.limit:
                context.storage.keep_snapshot(kind, rv, entries)
    return _cut(entries, rv, query)


def _cut(entries: Sequence[Entry], rv: int, query: ListQuery) -> Page:
    match = query.match
    if match is not None:
        entries = [entry for entry in entries if match(entry.obj)]
    if not query.limit or len(entries) <= query.limit:
        return Page(entries, rv)
    page = entries[: query.limit]
    token = _write_token(rv, page[-1].key)
    # As the real server: the number that remains is only there when nothing is filtered out.
    remaining = None if match is not None else len(entries) - query.limit
    return Page(page, rv, token, remaining)


def _check_version(query: ListQuery, current: int) -> None:
    text = query.resource_version
    if not text or text == "0":
        return
    if not text.isdigit():
        raise errors.bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}"')
    wanted = int(text)
    if wanted > current:
        raise errors.StatusError(
            504,
            "Timeout",
            f"Timeout: Too large resource version: {wanted}, current: {current}",
            {
                "causes": [
                    {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
                ]
            },
            retry_after=1,
        )
    if query.version_match == "Exact" and wanted < current:
        raise errors.expired("The resourceVersion for the provided list is too old.")


def _write_token(rv: int, last: tuple[str, str]) -> str:
    text = json.dumps({"v": _FORMAT, "rv": rv, "start": "/".join(last)})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        read = json.loads(text)
        namespace, _, name = read["start"].rpartition("/")
        return int(read["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise errors.bad_request("continue key is not valid: illegal base64 data") from None


def _expired_token() -> errors.StatusError:
    return errors.expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list."
    )


def render(
    kind: Kind, items: Iterable[bytes], page: Page, *, as_kind: tuple[str, str] | None
) -> bytes:
    """The list as JSON, from the items' own bytes."""
    meta = {"resourceVersion": str(page.rv)}
    if page.token:
        meta["continue"] = page.token
    body = json.dumps(meta, separators=(",", ":"))[:-1].encode()
    if page.remaining is not None:
        body += b',"remainingItemCount":' + str(page.remaining).encode()
    version, name = as_kind or (kind.api_version, f"{kind.kind}List")
    head = f'{{"kind":"{name}","apiVersion":"{version}","metadata":'.encode()
    return head + body + b'},"items":[' + b",".join(items) + b"]}\n"
