"""The next steps that the engine can take for a job; it may crash after each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.errors import ApiError
from engine.lifecycle.record import Record
from engine.lifecycle.state import FRESH_FOR, LifecycleState, Pod, is_terminating, name_of, uid_of
from engine.status.containers import has_running_container, main_containers_terminated
from engine.times import earliest


@dataclass(frozen=True, slots=True)
class ReportError:
    """Touch nothing, and fail the job: it is another's, or no record can say what was refused."""

    message: str
    """Whose it is, or the server's words."""
    hint: str = "give its own --source"
    """What the reader can do."""
    kind: type[ApiError] | None = None
    """The server's error; None where the job, or a pod with its name, is another's."""


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Step 1: create the pod, with the engine's gate."""

    attempt: int
    """The attempt's number."""
    policies: Mapping[str, str]
    """Pull policy of each container that has a list of them."""
    images: tuple[str, ...] = ()
    """Images that could not be pulled, and may be taken from a node that has them."""


@dataclass(frozen=True, slots=True)
class CreateDependents:
    """Create the Secret and ConfigMap that the pod owns, or make anew what it lacks."""

    attempt: int
    """The attempt's number."""
    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID."""
    policies: Mapping[str, str]
    """Pull policy of each container that has a list of them."""
    reported: bool | None = None
    """Whether an ungated pod says that it lacks one, or is only slow; None for a gated pod."""


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write the record, if it is still the one that was read."""

    record: Record
    """What it is to be."""


@dataclass(frozen=True, slots=True)
class RemoveSchedulingGate:
    """Step 4: remove the engine's gate, so that the pod is scheduled."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID, which the patch tests."""
    gate_index: int
    """Which of the pod's gates is the engine's."""
    gate_count: int
    """How many gates the pod has: others may hold it, too."""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod by its UID."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID, a precondition of the delete."""
    grace: int | None
    """Seconds; 0 where nothing of the pod ever ran, None for the pod's own."""
    why: str
    """The reason, for people."""
    version: str = ""
    """resourceVersion that it was decided on: a pod that has started or ended since is spared."""


@dataclass(frozen=True, slots=True)
class RefreshPod:
    """Ask the API itself for the pod and the record, before what can't be taken back.

    Also for a pod that is gone from the cache, which is no proof.
    """

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID."""


@dataclass(frozen=True, slots=True)
class FindPullCause:
    """The pod's status has lost the first reason of a pull failure: look for it in the Events."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID."""
    container: str
    """The container that could not get its image."""
    image: str
    """The image."""


@dataclass(frozen=True, slots=True)
class StampExpiry:
    """Write on the finished pod when it expires."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID."""
    at: str
    """The time, as RFC 3339."""
    annotated: bool = True
    """Whether it has annotations already."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until the cluster changes, or until `until`."""

    until: datetime | None = None
    """None if only a change of the cluster counts."""
    unrecorded: Record | None = None
    """What the record would say, where not even that can be kept in the cluster."""


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over and nothing is left to do."""


Step = (
    CreatePod
    | CreateDependents
    | WriteRecord
    | RemoveSchedulingGate
    | DeletePod
    | RefreshPod
    | FindPullCause
    | StampExpiry
)
Action = ReportError | Wait | Done | Step


def wait(state: LifecycleState, *times: datetime | None) -> Wait:
    """Wait until the earliest of `times`, or until a pod that no watch follows is to be read."""
    pod = state.unlabelled_pod()
    if pod is not None:
        read_at = state.observed.refreshed_at.get(uid_of(pod), state.now)
        times = (*times, read_at + FRESH_FOR)
    return Wait(earliest(*times))


def delete_pod_action(state: LifecycleState, pod: Pod, why: str) -> DeletePod | RefreshPod | Wait:
    """Delete the pod, at once if nothing of it ever ran, with its own grace otherwise.

    Or wait for a deletion, or an end of its own, that is under way. Only the API can tell whether
    the pod is not of a run or attempt that began since the record was read: another engine's, or
    one that was asked for.
    """
    if is_terminating(pod) or main_containers_terminated(pod):
        return wait(state)
    if not state.is_fresh(uid_of(pod)):
        return RefreshPod(name_of(pod), uid_of(pod))
    grace = None if has_running_container(pod) else 0
    version = pod["metadata"].get("resourceVersion", "")
    return DeletePod(name_of(pod), uid_of(pod), grace, why, version)
