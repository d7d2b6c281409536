"""Requests and replies as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names in lower case, the last value of a repeated query key."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def user_agent(self) -> str:
        """As the client calls itself."""
        return self.headers.get("user-agent", "")


@dataclass(frozen=True, slots=True)
class Response:
    """One reply with a body."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply without an end of its own; an empty chunk only asks whether the client is there."""

    chunks: Iterator[bytes]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    code: int = 200


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection without a reply (a fault)."""

    why: str = ""


Reply = Response | Stream | HangUp


@dataclass(frozen=True, slots=True)
class Head:
    """The part of a request before its body."""

    method: str
    target: str
    keep_alive: bool
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, body: bytes) -> Request:
        """The whole request, with its body."""
        path, _, query = self.target.partition("?")
        parsed = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        return Request(self.method, path, parsed, self.headers, body)


def read_head(raw: bytes) -> Head:
    """Errors: ValueError for what isn't HTTP/1.x."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise ValueError("not HTTP/1.x")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError("a header without a colon")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    keep = connection != "close" and (version != "HTTP/1.0" or connection == "keep-alive")
    return Head(method, target, keep, headers)
