"""Objects of any kind by their metadata alone: list, read, delete exactly what was read.

What decides over an object's end needs no more than its metadata, and a third of the bytes.
"""

from dataclasses import dataclass
from typing import Any

from engine.cluster.client import METADATA_LIST, Client
from engine.cluster.transport import Query
from engine.errors import NotFoundError
from engine.refs import Ref

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

Metadata = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of objects, and where the API serves it."""

    kind: str
    plural: str
    api_version: str = "v1"
    namespaced: bool = True

    def path(self, namespace: str, name: str = "") -> str:
        """Path of an object, or of all of them; "" for the namespace means all namespaces."""
        root = "/apis" if "/" in self.api_version else "/api"
        place = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        below = f"/{name}" if name else ""
        return f"{root}/{self.api_version}{place}/{self.plural}{below}"

    def ref(self, metadata: Metadata) -> Ref:
        return Ref(self.kind, metadata.get("namespace", ""), metadata["name"])


PODS = Resource("Pod", "pods")
SECRETS = Resource("Secret", "secrets")
CONFIG_MAPS = Resource("ConfigMap", "configmaps")


def list_page(
    client: Client,
    resource: Resource,
    namespace: str,
    *,
    selector: str = "",
    fields: str = "",
    token: str = "",
    page: int,
) -> tuple[list[Metadata], str]:
    """The metadata of one page, and the token of the next one; "" after the last.

    Errors: ExpiredError for a token that the server has forgotten.
    """
    given = {"labelSelector": selector, "fieldSelector": fields, "continue": token}
    query: Query = [("limit", str(page)), *((k, v) for k, v in given.items() if v)]
    answer = client.request("GET", resource.path(namespace), query=query, accept=METADATA_LIST)
    found = [item["metadata"] for item in answer["items"] or ()]
    return found, answer["metadata"].get("continue") or ""


def read_metadata(client: Client, resource: Resource, ref: Ref) -> Metadata | None:
    """None if the object isn't there."""
    try:
        path = resource.path(ref.namespace, ref.name)
        answer: Metadata = client.request("GET", path, accept=METADATA)["metadata"]
    except NotFoundError:
        return None
    return answer


def delete_exactly(
    client: Client,
    resource: Resource,
    metadata: Metadata,
    *,
    grace: int | None = None,
    dry_run: bool = False,
) -> Metadata:
    """Delete the object in exactly this version; what is left of it, {} if nothing is.

    Errors: ConflictError when it has changed or is another one; NotFoundError when it is gone.
    """
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {
            key: value
            for key, value in (
                ("uid", metadata["uid"]),
                ("resourceVersion", metadata.get("resourceVersion")),
            )
            if value
        },
        "propagationPolicy": "Background",
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    path = resource.path(metadata.get("namespace", ""), metadata["name"])
    answer = client.request("DELETE", path, body=options)
    left: Metadata = answer.get("metadata") or {}
    return {} if answer.get("kind") == "Status" else left
