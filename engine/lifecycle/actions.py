"""The next steps that the engine can take for a job; it may crash after each of them."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from engine.errors import EngineError, OwnershipError
from engine.lifecycle.record import Record
from engine.values import Comparable
from engine.wellknown import LAST_APPLIED


class ReportError(Struct, frozen=True):
    """Touch nothing, and fail the job: it is another's, or no record can say what was refused."""

    message: str
    """Whose it is, or the server's words."""
    hint: str = "give its own --source; engine adopt moves it to another one"
    """What the reader can do."""
    kind: type[EngineError] = OwnershipError
    """The error: the server's, or one that says whose the job is, or a pod with its name."""


class PodAction(Struct, frozen=True):
    """What is done to a pod, if it still has this UID."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID."""


class CreatePod(Comparable, frozen=True):
    """Step 1: create the pod, with the engine's gate."""

    NOT_COMPARED = frozenset({"fence"})

    attempt: int
    """The attempt's number."""
    policies: Mapping[str, str]
    """Pull policy of each container that has a list of them."""
    images: tuple[str, ...] = ()
    """Images that could not be pulled, and may be taken from a node that has them."""
    fence: int = 0
    """What its containers may fence off older pods of the job by."""


class CreateDependents(PodAction, frozen=True):
    """Create the Secret and ConfigMap that the pod owns, or make anew what it lacks."""

    attempt: int
    """The attempt's number."""
    policies: Mapping[str, str]
    """Pull policy of each container that has a list of them."""
    reported: bool | None = None
    """Whether an ungated pod says that it lacks one, or is only slow; None for a gated pod."""


class WriteRecord(Struct, frozen=True):
    """Write the record, if it is still the one that was read."""

    record: Record
    """What it is to be."""


class RemoveSchedulingGate(PodAction, frozen=True):
    """Step 4: remove the engine's gate, so that the pod is scheduled."""

    gate_index: int
    """Which of the pod's gates is the engine's."""
    gate_count: int
    """How many gates the pod has: others may hold it, too."""


class DeletePod(PodAction, frozen=True):
    """Delete a pod by its UID."""

    grace: int | None
    """Seconds; 0 where nothing of the pod ever ran, None for the pod's own."""
    why: str
    """The reason, for people."""
    version: str = ""
    """resourceVersion that it was decided on: a pod that has started or ended since is spared."""


class RefreshPod(PodAction, frozen=True):
    """Ask the API itself for the pod and the record, before what can't be taken back.

    Also for a pod that is gone from the cache, which is no proof.
    """


class FindPullCause(PodAction, frozen=True):
    """The pod's status says too little of a pull failure: look for its first reason in the Events,
    and whether the node has the image.
    """

    container: str
    """The container that could not get its image."""
    image: str
    """The image."""
    node: str = ""
    """The node that the pod may take it from; "" where it may take it from none."""


class UpdatePod(PodAction, frozen=True):
    """Write onto the pod, and onto what it owns, how the job is kept by now."""

    labels: Mapping[str, str | None]
    """New values; None removes one."""
    annotations: Mapping[str, str | None]
    """The same."""
    deadline: int | None = None
    """A shorter `activeDeadlineSeconds`."""

    @property
    def fields(self) -> tuple[str, ...]:
        """What changes, but for the engine's own mark."""
        names = [key for key in (*self.labels, *self.annotations) if key != LAST_APPLIED]
        return (*names, *(["activeDeadlineSeconds"] if self.deadline is not None else []))

    @property
    def once(self) -> str:
        """What this process writes onto the pod once: another one may keep the job in its way."""
        return f"{self.uid} {self.annotations.get(LAST_APPLIED)}"


class Wait(Struct, frozen=True):
    """Nothing to do until the cluster changes, or until `until`."""

    until: datetime | None = None
    """None if only a change of the cluster counts."""
    unrecorded: Record | None = None
    """What the record would say, where not even that can be kept in the cluster."""


class Done(Struct, frozen=True):
    """The run is over and nothing is left to do."""


Step = (
    CreatePod
    | CreateDependents
    | WriteRecord
    | RemoveSchedulingGate
    | DeletePod
    | RefreshPod
    | FindPullCause
    | UpdatePod
)
Action = ReportError | Wait | Done | Step
