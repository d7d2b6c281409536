"""The container whose log shows the state of a job."""

from collections.abc import Mapping
from typing import Any

from engine.refs import MAIN_CONTAINER
from engine.status.containers import ContainerState, container_states


def read_log_container(pod: Mapping[str, Any]) -> ContainerState | None:
    """The container that keeps the job from its end, or ended it; None if none has a log yet.

    A container that fails again and again comes first, then an init container that runs or has
    failed, then the main one.
    """
    states = list(container_states(pod))
    for state in states:
        if state.waiting and state.last_terminated:
            return state
    for state in states:
        is_in_the_way = state.running or state.terminated.get("exitCode")
        if state.is_init and not state.is_sidecar and is_in_the_way:
            return state
    return next((s for s in states if s.name == MAIN_CONTAINER and s.has_started), None)
