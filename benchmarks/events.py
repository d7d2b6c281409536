"""What a watch of this process hears, as it comes."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from urllib3.exceptions import ProtocolError

from benchmarks.place import Place

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
