"""Why a cluster can't be had, as one line a developer can act on."""

from __future__ import annotations


class ClusterUnavailable(Exception):  # noqa: N818 - a state of the machine, not a mistake
    """The machine can't run the cluster, or the cluster that was named can't be reached."""


class ComponentFailed(ClusterUnavailable):
    """A part of the cluster didn't start; the first line has the last of its log."""

    def __init__(self, name: str, cause: str, log_tail: str) -> None:
        last = log_tail.rpartition("\n")[2].strip()
        super().__init__(f"{name} {cause}: {last}\n{log_tail}" if log_tail else f"{name} {cause}")
        self.name = name
        self.cause = cause
        self.log_tail = log_tail
