"""What the server can do, by its version."""

import re
from dataclasses import dataclass

from engine.cluster.client import Client

_GATES_SINCE = (1, 27)
_SIDECARS_SINCE = (1, 29)


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """Scheduling gates are on by default from 1.27, native sidecars from 1.29."""

    version: tuple[int, int]

    @property
    def gates(self) -> bool:
        return self.version >= _GATES_SINCE

    @property
    def native_sidecars(self) -> bool:
        return self.version >= _SIDECARS_SINCE


def read_server_features(client: Client) -> ServerFeatures:
    """One request; providers write minor versions such as `27+`."""
    answer = client.request("GET", "/version")
    return ServerFeatures((_number(answer.get("major")), _number(answer.get("minor"))))


def _number(text: str | None) -> int:
    digits = re.match(r"\d+", text or "")
    return int(digits.group()) if digits else 0
