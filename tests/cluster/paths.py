"""Where the API server keeps what: from a resource's plural to the path of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping


def path_of(resource: str, namespace: str | None = None, name: str | None = None) -> str:
    *group, plural = resource.split("/")
    steps = ["/apis", *group] if group else ["/api", "v1"]
    steps += ["namespaces", namespace] if namespace else []
    return "/".join([*steps, plural, *([name] if name else [])])


def with_query(path: str, query: Mapping[str, str | None]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
