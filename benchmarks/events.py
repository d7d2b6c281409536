"""What a watch of this process hears, as it comes."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self

from urllib3.exceptions import ProtocolError

from benchmarks.place import Place

_LONGEST_START = 300.0
Take = Callable[[dict[str, Any], float], None]


class Events:
    """Gives `take` each event of the collection at `path`, and when it came, until the block ends.

    Guarantees: nothing is missed that happens after this was made.
    """

    def __init__(self, place: Place, path: str, take: Take, selector: str = "") -> None:
        query = f"labelSelector={selector}"
        version = place.bare.get(f"{path}?limit=1&{query}")["metadata"]["resourceVersion"]
        self._take = take
        self._stream = place.bare.stream(f"{path}?watch=1&{query}&resourceVersion={version}")
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.shutdown()
        self._thread.join(5)
        self._stream.close()

    def _read(self) -> None:
        rest = b""
        with suppress(ProtocolError):  # how a server's stream ends that is cut off here
            for chunk in self._stream.stream(decode_content=False):
                at = time.perf_counter()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(json.loads(line), at)


class Starts:
    """When each job's pod was let go, through a watch of this process."""

    def __init__(self, place: Place, namespace: str, length: int | None = None) -> None:
        """A pod's name begins with its job's, of this `length`; without one each pod counts."""
        self._length = length
        self._at: dict[str, float] = {}
        self._changed = threading.Condition()
        self._events = Events(place, f"/api/v1/namespaces/{namespace}/pods", self._take)

    def __enter__(self) -> Self:
        self._events.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._events.__exit__(*error)

    def wait(self, count: int) -> float:
        """When the last of so many was. Errors: RuntimeError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._at) >= count, _LONGEST_START):
                raise RuntimeError(f"of {count} jobs only {len(self._at)} were started")
            return max(self._at.values())

    def of(self, names: Iterable[str]) -> float:
        """When the last of these jobs was. Errors: as those of `wait`."""
        wanted = {*names}
        with self._changed:
            if not self._changed.wait_for(lambda: wanted <= self._at.keys(), _LONGEST_START):
                missing = len(wanted - self._at.keys())
                raise RuntimeError(f"of {len(wanted)} jobs {missing} are not started")
            return max(self._at[name] for name in wanted)

    def _take(self, event: dict[str, Any], at: float) -> None:
        pod = event["object"]
        if not pod["spec"].get("schedulingGates"):
            with self._changed:
                self._at.setdefault(pod["metadata"]["name"][: self._length], at)
                self._changed.notify_all()
