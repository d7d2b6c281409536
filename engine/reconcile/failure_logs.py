"""Keep the end of a failed container's log, as soon as its attempt has failed: pods go."""

from contextlib import suppress
from dataclasses import dataclass

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import read_log_end
from engine.errors import EngineError
from engine.refs import Ref
from engine.status.log_container import read_log_container
from engine.status.outcome import Reason
from engine.telemetry.events import AttemptFailed

_LINES = 20
_TIMEOUT = 5.0
"""Seconds that a job's end waits for a node that is silent."""
_WITH_A_LOG = frozenset(
    {
        Reason.SCRIPT_FAILED,
        Reason.DEADLINE_EXCEEDED,
        Reason.OOM_KILLED,
        Reason.CONTAINER_CONFIG_ERROR,
        Reason.START_TIMEOUT,
    }
)
"""Outcomes of pods that are still there, in which a container may have run."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The last lines of a container that failed."""

    attempt: int
    """The attempt's number."""
    pod: str
    """The pod's name."""
    container: str
    """The container's name."""
    lines: tuple[str, ...]
    """As the container wrote them."""


def read_failure_log(client: Client, event: AttemptFailed) -> LogEnd | None:
    """The end of the log of an attempt that has failed; None if there is none, or on any error."""
    if event.reason not in _WITH_A_LOG:
        return None
    ref = Ref("Pod", event.key.namespace, event.pod)
    with suppress(EngineError):
        pod = api.get(client, ref, timeout=_TIMEOUT)
        state = read_log_container(pod) if pod is not None else None
        if state is None:
            return None
        lines = read_log_end(client, ref, state.name, lines=_LINES, timeout=_TIMEOUT)
        return LogEnd(event.attempt, event.pod, state.name, tuple(lines)) if lines else None
    return None
