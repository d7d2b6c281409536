"""Reading container statuses: the API leaves out what is empty, so any step may be missing."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from engine.refs import MAIN_CONTAINER
from engine.times import parse_time


class ContainerState(Struct, frozen=True):
    """State of one container, its parts as in the API, {} where it has none."""

    name: str
    """The container's name."""
    image: str
    """The image that the kubelet names."""
    is_init: bool
    """Whether it is one of the init containers, as sidecars are, too."""
    is_sidecar: bool
    """Whether it runs beside the main container until that ends."""
    waiting: Mapping[str, Any]
    """Why it waits."""
    is_ready: bool
    """Whether it runs, and its startup probe has succeeded if it has one."""
    running: Mapping[str, Any]
    """Since when it runs; never empty while it does."""
    terminated: Mapping[str, Any]
    """How it ended."""
    last_terminated: Mapping[str, Any]
    """How it ended the last time, if it was restarted since."""

    @property
    def has_started(self) -> bool:
        """Whether it runs, or has run."""
        return bool(self.running or self.terminated)

    @property
    def message(self) -> str:
        """What the kubelet says of its waiting; of a back-off, what it backs off from."""
        return (self.waiting.get("message") or "").rpartition(": ErrImagePull: ")[2].strip()

    @property
    def is_own_work(self) -> bool:
        """Whether it is the job's main container, or an init container before it."""
        return self.name == MAIN_CONTAINER or (self.is_init and not self.is_sidecar)


def container_states(pod: Mapping[str, Any]) -> Iterator[ContainerState]:
    """States of all containers that the kubelet has reported, init containers first."""
    status = pod.get("status") or {}
    for statuses, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for entry in status.get(statuses) or ():
            state = entry.get("state") or {}
            running = state.get("running")
            yield ContainerState(
                name=entry["name"],
                image=entry.get("image", ""),
                is_init=is_init,
                is_sidecar=is_init and _is_sidecar(pod, entry["name"]),
                waiting=state.get("waiting") or {},
                is_ready=running is not None and entry.get("started") is not False,
                running={} if running is None else running or {"startedAt": None},
                terminated=state.get("terminated") or {},
                last_terminated=(entry.get("lastState") or {}).get("terminated") or {},
            )


def _is_sidecar(pod: Mapping[str, Any], name: str) -> bool:
    containers = (pod.get("spec") or {}).get("initContainers") or ()
    return any(c["name"] == name and c.get("restartPolicy") == "Always" for c in containers)


def main_state(pod: Mapping[str, Any]) -> ContainerState | None:
    """State of the job's own container, once the kubelet has reported it."""
    return next((one for one in container_states(pod) if one.name == MAIN_CONTAINER), None)


def failed_init(pod: Mapping[str, Any]) -> ContainerState | None:
    """State of the init container that failed before the main one could start."""
    inits = (one for one in container_states(pod) if one.is_init and not one.is_sidecar)
    return next((one for one in inits if one.terminated.get("exitCode")), None)


def has_started(pod: Mapping[str, Any]) -> bool:
    """Whether the job's own work has begun: its main container, or an init container before it."""
    return any(state.has_started and state.is_own_work for state in container_states(pod))


def has_main_started(pod: Mapping[str, Any]) -> bool:
    """Whether the main container runs, or has run."""
    main = main_state(pod)
    return main is not None and (main.has_started or bool(main.last_terminated))


def main_containers_terminated(pod: Mapping[str, Any]) -> bool:
    """Whether all but native sidecars have ended: those are stopped by the kubelet."""
    are_reported = False
    for state in container_states(pod):
        if not (state.is_init or state.terminated):
            return False
        are_reported = are_reported or not state.is_init
    return are_reported


def started_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the main container started, as the kubelet says.

    Of one that ends at once containerd can have the start a second after the end.
    """
    main, ended = main_state(pod), finished_at(pod)
    if main is None:
        return None
    began = parse_time(main.running.get("startedAt") or main.terminated.get("startedAt"))
    return min(began, ended) if began and ended else began


def finished_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the main container ended, as the kubelet says."""
    main = main_state(pod)
    return parse_time(main.terminated.get("finishedAt")) if main else None
