"""Logs of containers: the lines of one that runs, and whole ones as files."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine.cluster import api
from engine.cluster.client import READ_TIMEOUT, Client
from engine.errors import EngineError, UnreachableError
from engine.lifecycle.record import Attempt
from engine.refs import JobKey, Ref
from engine.status.containers import container_states

_MAX_LINE = 1 << 20
"""Bytes of a line that are masked together."""
_END_TIMEOUT = 5.0
"""Seconds that a job's end waits for a node that is silent."""


class LogFollower(Struct):
    """The lines of one container's log, each once, however often its connection breaks.

    Assumptions: the node stamps lines in ascending order and in one format, as kubelets do.
    """

    client: Client
    pod: Ref
    container: str
    tail: int | None = None
    """Begin with the last so many lines; None for the first one."""
    timeout: float = READ_TIMEOUT
    """Seconds of silence that end a connection."""
    _last: bytes = b""
    """The time of the last line."""
    _seen: int = 0
    """How many lines had that time."""

    def lines(self) -> Iterator[bytes]:
        """New lines, until the container ends, the connection breaks or is silent for long.

        Errors: those of a refusal; after anything else the caller asks again.
        """
        options = {"follow": "true", "timestamps": "true"}
        if self._last:
            options["sinceTime"] = self._last.decode(errors="replace")
        elif self.tail is not None:
            options["tailLines"] = str(self.tail)
        pieces = api.read_log(self.client, self.pod, self.container, options, timeout=self.timeout)
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


class LogArchive(Struct, frozen=True):
    """The logs of containers as files: `FOLDER/namespace/pod/container.log`.

    Guarantees: a file is whole or not there; a log is never held in memory. Safe to use from
    several threads.
    """

    folder: Path
    redact: Callable[[str], str]
    """Masks what is secret in a text."""

    def save_attempt(self, client: Client, key: JobKey, attempt: Attempt) -> Iterator[str]:
        """Save the logs of an attempt that has ended, before its pod is deleted.

        What could not be saved, and why.
        """
        ref = Ref("Pod", key.namespace, attempt.pod)
        if not attempt.uid:
            return
        try:
            pod = api.get(client, ref, timeout=_END_TIMEOUT)
        except EngineError as error:
            yield error.cause
            return
        if pod is None or pod["metadata"]["uid"] != attempt.uid:
            if attempt.started_at is not None:
                yield "the pod is gone"
            return
        for name in (one.name for one in container_states(pod) if one.has_started):
            try:
                self.save(client, ref, name, timeout=_END_TIMEOUT)
            except EngineError as error:
                yield f"{name}: {error.cause}"
            except OSError as error:
                yield f"{error.strerror}: {self.folder}"

    def save(
        self, client: Client, pod: Ref, container: str, *, timeout: float = READ_TIMEOUT
    ) -> None:
        """Save a log as it is now, in place of what was saved of it before.

        Errors: those of `read_log`; OSError.
        """
        folder = self.folder / pod.namespace / pod.name
        log = api.read_log(client, pod, container, timeout=timeout)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as unfinished:
            file = Path(unfinished, container)
            with file.open("wb") as out:
                out.writelines(map(self._mask, _in_lines(log)))
            file.replace(folder / f"{container}.log")

    def _mask(self, lines: bytes) -> bytes:
        text = lines.decode(errors="surrogateescape")
        return self.redact(text).encode(errors="surrogateescape")


def _in_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, in pieces that end with a line, unless that is longer than 1 MiB."""
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        if end:
            yield lines + end
        if len(rest) > _MAX_LINE:
            yield rest
            rest = b""
    yield rest
