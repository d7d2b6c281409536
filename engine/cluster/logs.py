"""Logs of containers: the end of one that has ended, and the lines of one that runs."""

from collections.abc import Iterator
from contextlib import suppress

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.transport import READ_TIMEOUT
from engine.errors import UnreachableError
from engine.refs import Ref

_MOST = 65_536
"""Bytes of the end of a log: a container may write one line of any length."""


def read_log_end(
    client: Client, pod: Ref, container: str, *, lines: int, timeout: float
) -> list[str]:
    """The last lines, at most 64 KiB, and no line without its beginning.

    Errors: those of `read_log`.
    """
    end, is_cut, options = b"", False, {"tailLines": str(lines)}
    for piece in api.read_log(client, pod, container, options, timeout=timeout):
        end += piece
        is_cut = is_cut or len(end) > _MOST
        end = end[-_MOST:]
    text = end.decode(errors="replace")
    return (text.partition("\n")[2] if is_cut else text).splitlines()[-lines:]


class LogFollower:
    """The lines of one container's log, each once, however often its connection breaks.

    Assumptions: the node stamps lines in ascending order and in one format, as kubelets do.
    """

    def __init__(
        self,
        client: Client,
        pod: Ref,
        container: str,
        *,
        tail: int | None = None,
        timeout: float = READ_TIMEOUT,
    ) -> None:
        """`tail`: begin with the last so many lines, not with the first one.

        `timeout` is how many seconds of silence end a connection.
        """
        self._client = client
        self._pod = pod
        self._container = container
        self._tail = tail
        self._timeout = timeout
        self._last = b""
        self._seen = 0
        """How many lines bore the time of the last one."""

    def lines(self) -> Iterator[bytes]:
        """What is new, until the container ends, the connection breaks or is silent for long.

        Errors: those of a refusal; after anything else the caller asks again.
        """
        options = {"follow": "true", "timestamps": "true"}
        if self._last:
            options["sinceTime"] = self._last.decode(errors="replace")
        elif self._tail is not None:
            options["tailLines"] = str(self._tail)
        pieces = api.read_log(
            self._client, self._pod, self._container, options, timeout=self._timeout
        )
        again, rest = self._seen, b""
        with suppress(UnreachableError):
            for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    stamp, _, text = line.partition(b" ")
                    if stamp < self._last or (stamp == self._last and again > 0):
                        again -= stamp == self._last
                        continue
                    self._seen = self._seen + 1 if stamp == self._last else 1
                    self._last = stamp
                    yield text + b"\n"
