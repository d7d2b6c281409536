"""The main container has ended: its end is the job's end, whatever the services still do."""

from typing import Any

from engine.status.container_end import read_container_end
from engine.status.containers import main_state
from engine.status.outcome import Outcome


def read_main_container(pod: dict[str, Any]) -> Outcome | None:
    """Outcome of the main container, once it has ended."""
    main = main_state(pod)
    if main is None or not main.terminated:
        return None
    return read_container_end(pod, main)
