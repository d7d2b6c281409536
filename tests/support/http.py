"""HTTP as all tests speak it: one exchange, whatever its status; of the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Reply:
    """A reply; its body as JSON, or as text where it isn't JSON."""

    code: int
    headers: Message
    data: bytes

    @cached_property
    def body(self) -> Any:
        try:
            return json.loads(self.data)
        except ValueError:
            return self.data.decode(errors="replace")

    @property
    def message(self) -> str:
        return str(self.body["message"] if isinstance(self.body, dict) else self.body)

    @property
    def reason(self) -> str:
        return str(self.body["reason"])

    @property
    def rv(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


def connect(
    url: str, tls: ssl.SSLContext | None = None, timeout: float | None = 30.0
) -> http.client.HTTPConnection:
    place = urlsplit(url).netloc
    if tls is None:
        return http.client.HTTPConnection(place, timeout=timeout)
    return http.client.HTTPSConnection(place, timeout=timeout, context=tls)


def request(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    account: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    """Errors: OSError when the server can't be reached, or breaks off."""
    sent = dict(headers or {})
    if account:
        sent["Authorization"] = "Basic " + base64.b64encode(":".join(account).encode()).decode()
    connection = connect(url, tls)
    try:
        connection.request(method, target_of(url), body=body, headers=sent)
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read())
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url}: {error!r}") from error
    finally:
        connection.close()


def target_of(url: str) -> str:
    """What the request line says of it."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")
