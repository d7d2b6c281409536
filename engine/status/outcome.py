"""The vocabulary of ends: states a job can be in, reasons an attempt can end with."""

from dataclasses import dataclass
from enum import StrEnum

from engine.errors import ExitCode


class State(StrEnum):
    """Where a run stands."""

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
    SCRIPT_FAILED = "ScriptFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    START_TIMEOUT = "StartTimeout"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    INVALID_IMAGE = "InvalidImage"
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    QUOTA_EXCEEDED = "QuotaExceeded"
    ADMISSION_REFUSED = "AdmissionRefused"
    POD_DELETED = "PodDeleted"
    EVICTED = "Evicted"
    NODE_LOST = "NodeLost"
    OOM_KILLED = "OOMKilled"
    CANCELLED = "Cancelled"

    @property
    def state(self) -> State:
        """The final state that an attempt with this reason leaves its job in."""
        match self:
            case Reason.SUCCEEDED:
                return State.SUCCEEDED
            case Reason.CANCELLED:
                return State.CANCELLED
            case _:
                return State.FAILED

    @property
    def exit_code(self) -> ExitCode:
        """What the command line ends with for it."""
        match self:
            case Reason.SUCCEEDED:
                return ExitCode.OK
            case Reason.IMAGE_PULL_FAILED | Reason.INVALID_IMAGE:
                return ExitCode.IMAGE_PULL
            case Reason.QUOTA_EXCEEDED | Reason.ADMISSION_REFUSED:
                return ExitCode.REFUSED
            case Reason.POD_DELETED | Reason.EVICTED | Reason.NODE_LOST | Reason.START_TIMEOUT:
                return ExitCode.SYSTEM_FAILURE
            case _:
                return ExitCode.JOB_FAILED


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended; `exit_code` is the main container's, where it had one."""

    reason: Reason
    message: str = ""
    exit_code: int | None = None
