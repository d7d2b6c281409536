"""One HTTP exchange with a server on loopback, whatever its status."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def request(
    method: str,
    url: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    account: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    """Errors: OSError when the server can't be reached."""
    parts = urlsplit(url)
    sent = {"Content-Length": str(len(body)), **(headers or {})}
    if account:
        sent["Authorization"] = "Basic " + base64.b64encode(":".join(account).encode()).decode()
    connection = (
        http.client.HTTPSConnection(parts.netloc, timeout=30, context=tls)
        if tls
        else http.client.HTTPConnection(parts.netloc, timeout=30)
    )
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body=body or None, headers=sent)
        response = connection.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url}: {error!r}") from error
    finally:
        connection.close()
