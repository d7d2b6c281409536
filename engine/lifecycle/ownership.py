"""What proves that the engine may delete an object. Labels find objects, and prove nothing.

`cluster.api.delete` asks for a proof, and nothing is deleted without one.
"""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from engine.lifecycle.record import Record
from engine.lifecycle.state import gate_position
from engine.refs import JobKey, parse_pod_name, record_name

Metadata = Mapping[str, Any]


class Recorded(Struct, frozen=True):
    """The job's record has the pod, by its UID and under the name that job, run and number give.

    It covers the Secret and ConfigMap with an owner reference to such a pod, whose name they share.
    """

    record: Record

    def covers(self, kind: str, metadata: Metadata) -> bool:
        """As `Proof`."""
        name, pods = metadata["name"], self.record.pods
        uids = [metadata["uid"]] if kind == "Pod" else _uids_of_owners(metadata)
        is_here = metadata["namespace"] == self.record.key.namespace
        return is_here and any(pods.get(uid) == name for uid in uids)


class NeverRan(Struct, frozen=True):
    """The engine's gate is on the pod, in this very version: a gate can't be added to a pod that
    is there, so nothing of the pod ever ran.
    """

    pod: Mapping[str, Any]

    def covers(self, kind: str, metadata: Metadata) -> bool:
        """As `Proof`."""
        own = self.pod["metadata"]
        is_same = all(metadata[key] == own[key] for key in ("uid", "resourceVersion"))
        is_named = parse_pod_name(metadata["name"]) is not None
        return kind == "Pod" and is_same and is_named and gate_position(self.pod) is not None


class LeftBehind(Struct, frozen=True):
    """Every owner is a pod of this name: our own, or one that is gone, for a name is given once."""

    pod: str

    def covers(self, kind: str, metadata: Metadata) -> bool:
        """As `Proof`."""
        owners = metadata.get("ownerReferences") or ()
        is_only_owner = len(owners) == len(_uids_of_owners(metadata)) > 0
        return kind != "Pod" and metadata["name"] == self.pod and is_only_owner


class Marked(Struct, frozen=True):
    """One of these annotations is the mark of what may go, and the operator asked for it."""

    annotations: Collection[str]

    def covers(self, kind: str, metadata: Metadata) -> bool:  # noqa: ARG002 - of any kind
        """As `Proof`."""
        return not set(self.annotations).isdisjoint(metadata.get("annotations") or ())


class OwnRecord(Struct, frozen=True):
    """It is the record of this job, in the version that was judged."""

    key: JobKey

    def covers(self, kind: str, metadata: Metadata) -> bool:
        """As `Proof`."""
        place = (kind, metadata["namespace"], metadata["name"])
        is_record = place == ("ConfigMap", self.key.namespace, record_name(self.key.name))
        return is_record and bool(metadata.get("resourceVersion"))


Proof = Recorded | NeverRan | LeftBehind | Marked | OwnRecord
"""Why an object may be deleted: `covers` says whether it is a proof for the object's metadata."""


def _uids_of_owners(metadata: Metadata) -> list[str]:
    """Of the pods among its owners that share its name."""
    owners = metadata.get("ownerReferences") or ()
    return [o["uid"] for o in owners if (o["kind"], o["name"]) == ("Pod", metadata["name"])]
