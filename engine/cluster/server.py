"""Which servers the engine works with: older ones lack what every job stands on."""

import re
from collections.abc import Mapping
from typing import Any

from engine.cluster.client import Client
from engine.errors import UnsupportedServerError

OLDEST_SERVER = (1, 30)
"""The first release that always has scheduling gates and native sidecars, and is tested."""

_NO_VERSION = "is this an API server, or a proxy before it?"


def check_server_version(client: Client) -> None:
    """Refuse a server that is too old; one request, to be made before any other.

    Errors: UnsupportedServerError for an older server, or one that doesn't tell its version;
    those of a request.
    """
    answer = client.request("GET", "/version")
    version, oldest = server_version(answer), "{}.{}".format(*OLDEST_SERVER)
    if version is None:
        raise UnsupportedServerError(
            f"the server doesn't say which version it is; {oldest} is the oldest supported one",
            where=client.server,
            hint=_NO_VERSION,
        )
    if version < OLDEST_SERVER:
        raise UnsupportedServerError(
            "the server is Kubernetes {}.{}, ".format(*version)
            + f"older than {oldest}, the oldest supported version",
            where=client.server,
            hint="upgrade the cluster, or use another context",
        )


def server_version(answer: Mapping[str, Any]) -> tuple[int, int] | None:
    """(major, minor) in an answer of /version; providers write minors such as `30+`."""
    major, minor = _number(answer.get("major")), _number(answer.get("minor"))
    return None if major is None or minor is None else (major, minor)


def _number(text: object) -> int | None:
    digits = re.match(r"\d+", text) if isinstance(text, str) else None
    return int(digits.group()) if digits else None
