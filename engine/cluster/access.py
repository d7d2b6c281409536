"""What the engine may do, asked before it does it: a refusal stands in the server's audit log."""

from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.refs import Right

REVIEWS = "/apis/authorization.k8s.io/v1"
TIMEOUT = 5.0
"""Seconds for an answer."""


def is_allowed(client: Client, right: Right, namespace: str = "", timeout: float = TIMEOUT) -> bool:
    """Whether we have `right` in a namespace, or ("") in all of them.

    Errors: those of the API; a server may refuse even to tell.
    """
    resource, _, subresource = right.resource.partition("/")
    attributes = {"namespace": namespace, "verb": right.verb, "group": right.group,
                  "resource": resource, "subresource": subresource}  # fmt: skip
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    answer = client.request("POST", path, body=body, timeout=timeout)
    return bool((answer.get("status") or {}).get("allowed"))


def may_list(client: Client, resource: Resource, namespace: str = "") -> bool:
    """Whether to list a kind there, or in all namespaces; where nobody tells, the list will."""
    group = resource.api_version.rpartition("/")[0]
    try:
        return is_allowed(client, Right("list", resource.plural, group), namespace)
    except EngineError:
        return True
