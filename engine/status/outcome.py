"""The vocabulary of ends: states a job can be in, reasons an attempt can end with."""

from enum import StrEnum

from msgspec import Struct

from engine.errors import ExitCode
from engine.values import Text


class State(StrEnum):
    """The state of a run."""

    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens in it."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Reason(StrEnum):
    """How an attempt or a run ended."""

    SUCCEEDED = "Succeeded"
    """The main container ended with 0."""
    SCRIPT_FAILED = "ScriptFailed"
    """The main container, or an init container, ended with another exit code than 0."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """The job ran longer than its timeout, counted from when a node took up its pod."""
    START_TIMEOUT = "StartTimeout"
    """The main container did not start within startTimeout; the message says what it waited for."""
    IMAGE_PULL_FAILED = "ImagePullFailed"
    """An image could not be pulled, and no pull policy was left; the message has every attempt."""
    INVALID_IMAGE = "InvalidImage"
    """No image can have that name."""
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    """A container could not be created or started, or a Secret that it refers to does not exist."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """A quota has no room for the job: it is Queued, and the next reconcile asks again."""
    WAITING_FOR_IMAGE = "WaitingForImage"
    """Another job pulls its image first: it is Queued, without a pod, until that is done."""
    ADMISSION_REFUSED = "AdmissionRefused"
    """The API server or an admission webhook refused an object of the job."""
    POD_DELETED = "PodDeleted"
    """The pod was deleted while it ran, and its main container did not end with 0."""
    EVICTED = "Evicted"
    """The cluster ended the pod: its node ran out of room, or was drained."""
    PREEMPTED = "Preempted"
    """The cluster ended the pod to make room for one of a higher priority."""
    NODE_LOST = "NodeLost"
    """The node was lost or shut down while the pod was on it."""
    OOM_KILLED = "OOMKilled"
    """A container used more memory than its limit, or than the node had."""
    DEPENDENCY_FAILED = "DependencyFailed"
    """A job that it waits for failed, or was cancelled; it runs once that one has succeeded."""
    SUPERSEDED = "Superseded"
    """Another revision of the spec runs, which was asked for later."""
    CANCELLED = "Cancelled"
    """The job was cancelled by name, its spec was removed, or its pod was pruned."""

    @property
    def state(self) -> State:
        """The final state that an attempt with this reason leaves its job in."""
        finals = {Reason.SUCCEEDED: State.SUCCEEDED}
        finals |= dict.fromkeys((Reason.CANCELLED, Reason.SUPERSEDED), State.CANCELLED)
        return finals.get(self, State.FAILED)

    @property
    def exit_code(self) -> ExitCode:
        """What the command line ends with for it."""
        match self:
            case Reason.SUCCEEDED | Reason.WAITING_FOR_IMAGE:
                return ExitCode.OK
            case Reason.IMAGE_PULL_FAILED | Reason.INVALID_IMAGE:
                return ExitCode.IMAGE_PULL
            case Reason.QUOTA_EXCEEDED | Reason.ADMISSION_REFUSED | Reason.SUPERSEDED:
                return ExitCode.REFUSED
            case Reason.POD_DELETED | Reason.EVICTED | Reason.PREEMPTED | Reason.NODE_LOST:
                return ExitCode.SYSTEM_FAILURE
            case Reason.START_TIMEOUT:
                return ExitCode.SYSTEM_FAILURE
            case _:
                return ExitCode.JOB_FAILED


class EventReason(StrEnum):
    """Reasons of the engine's own Events; all but AttemptStarted are Warnings."""

    STARTED = "AttemptStarted"
    """The first attempt of a run that is not the job's first started; the message has its cause."""

    PULL_POLICY_FALLBACK = "PullPolicyFallback"
    """A container's image could not be pulled, and the next attempt uses another pull policy."""
    ATTEMPT_FAILED = "AttemptFailed"
    """An attempt failed, and no other pull policy is the answer; the message has its outcome."""
    INVALID_SPEC = "InvalidSpec"
    """On a JobSpec object: nothing of it is started, and the message says why."""
    HOLDS_DRAIN = "HoldsDrain"
    """A drain of the node waits for this protected pod; the message says until when at most."""


class Masked(str):
    """Words in which secrets are masked. A redactor makes them, and a record holds no others."""

    __slots__ = ()


class LastWords(Struct, frozen=True):
    """The last lines of a container that failed."""

    container: str
    """The container's name."""
    message: Text
    """At most 80 lines and 2 KiB."""


class Outcome(Struct, frozen=True):
    """How an attempt ended; `exit_code` is the main container's, where it had one."""

    reason: Reason
    message: str = ""
    exit_code: int | None = None
    last_words: tuple[LastWords, ...] = ()
    """Only where the job's secrets can be masked in them."""
