"""One HTTP exchange with a server on loopback, whatever its status."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


def request(
    method: str,
    url: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    account: tuple[str, str] | None = None,
) -> Reply:
    """Errors: OSError when the server can't be reached."""
    parts = urlsplit(url)
    sent = {"Content-Length": str(len(body)), **(headers or {})}
    if account:
        sent["Authorization"] = "Basic " + base64.b64encode(":".join(account).encode()).decode()
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body=body or None, headers=sent)
        response = connection.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url}: {error!r}") from error
    finally:
        connection.close()
