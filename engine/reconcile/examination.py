"""Find out what `decide/doctor` goes by: requests that change nothing, and give up soon."""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.cluster import api
from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.cluster.leases import read_lease
from engine.cluster.server import OLDEST_SERVER, server_version
from engine.cluster.transport import JSON
from engine.decide.doctor.facts import Facts, NamespaceFacts, Right
from engine.decide.doctor.rights import granted, needed
from engine.decide.lease import lease_name
from engine.errors import ApiError, BusyError, ForbiddenError, NotFoundError, UnauthorizedError
from engine.podsecurity import Level
from engine.refs import Ref

TIMEOUT = 5.0
"""Seconds for any one request: a server that hangs is a finding, too."""
_REVIEWS = "/apis/authorization.k8s.io/v1"
_LIMIT_RANGES = Resource("LimitRange", "limitranges")
_SERVICE_ACCOUNTS = Resource("ServiceAccount", "serviceaccounts")
_REGISTRY = "type=kubernetes.io/dockerconfigjson"
_T = TypeVar("_T")


def examine(client: Client, namespaces: Iterable[str], source: str, pod_security: Level) -> Facts:
    """Errors: UnreachableError, BusyError or UnauthorizedError where nothing can be found out."""
    began = time.monotonic()
    answer = _read(lambda: client.request("GET", "/version", timeout=TIMEOUT)) or {}
    seconds = time.monotonic() - began
    now = client.now()
    skew = (now - datetime.now(UTC)).total_seconds()
    places = tuple(_examine_namespace(client, name, source) for name in namespaces)
    cluster_rights = frozenset(
        right for right in needed(in_cluster=True) if _is_allowed(client, right, "")
    )
    return Facts(
        server=client.server,
        seconds=seconds,
        version=server_version(answer),
        oldest=OLDEST_SERVER,
        skew=skew,
        now=now,
        source=source,
        pod_security=pod_security,
        namespaces=places,
        cluster_rights=cluster_rights,
    )


def _examine_namespace(client: Client, name: str, source: str) -> NamespaceFacts:
    try:
        namespace = _read(
            lambda: client.request("GET", api.NAMESPACES.path("", name), timeout=TIMEOUT),
            missing_is_none=False,
        )
    except NotFoundError:
        return NamespaceFacts(name, is_missing=True)
    secrets = _list(client, api.SECRETS, name, fields=_REGISTRY, accept=api.METADATA_LIST)
    return NamespaceFacts(
        name,
        namespace,
        rights=_rights_in(client, name),
        quotas=_list(client, api.RESOURCE_QUOTAS, name),
        limit_ranges=_list(client, _LIMIT_RANGES, name),
        registry_secrets=None
        if secrets is None
        else frozenset(secret["metadata"]["name"] for secret in secrets),
        pull_secrets=_pull_secrets(client, name),
        lease=_read(lambda: read_lease(client, name, lease_name(source), timeout=TIMEOUT)),
    )


def _rights_in(client: Client, namespace: str) -> frozenset[Right]:
    """By one review of all rules; one by one what an authorizer doesn't list."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    path = f"{_REVIEWS}/selfsubjectrulesreviews"
    answer = _read(lambda: client.request("POST", path, body=body, timeout=TIMEOUT)) or {}
    status: Mapping[str, Any] = answer.get("status") or {"incomplete": True}
    rules = status.get("resourceRules") or ()
    wanted = needed(in_cluster=False)
    there = frozenset(right for right in wanted if granted(rules, right))
    if not status.get("incomplete"):
        return there
    others = (right for right in wanted if right not in there)
    return there | {right for right in others if _is_allowed(client, right, namespace)}


def _is_allowed(client: Client, right: Right, namespace: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"namespace": namespace, "verb": right.verb, "group": right.group,
                  "resource": resource, "subresource": subresource}  # fmt: skip
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    path = f"{_REVIEWS}/selfsubjectaccessreviews"
    answer = _read(lambda: client.request("POST", path, body=body, timeout=TIMEOUT)) or {}
    return bool((answer.get("status") or {}).get("allowed"))


def _pull_secrets(client: Client, namespace: str) -> frozenset[str] | None:
    ref = Ref("ServiceAccount", namespace, "default")
    account = _read(lambda: api.get(client, ref, _SERVICE_ACCOUNTS, timeout=TIMEOUT))
    if account is None:
        return None
    return frozenset(str(one.get("name")) for one in account.get("imagePullSecrets") or ())


def _list(
    client: Client, resource: Resource, namespace: str, *, fields: str = "", accept: str = JSON
) -> list[dict[str, Any]] | None:
    query = [("limit", str(api.PAGE_SIZE))] + ([("fieldSelector", fields)] if fields else [])
    path = resource.path(namespace)
    try:
        answer = _read(
            lambda: api.list_page(client, path, query, accept=accept, timeout=TIMEOUT),
            missing_is_none=False,
        )
    except NotFoundError:
        return []
    return None if answer is None else list(answer["items"])


def _read(ask: Callable[[], _T], *, missing_is_none: bool = True) -> _T | None:
    """None where we may not; what keeps everything else from being found out goes up."""
    try:
        return ask()
    except ForbiddenError:
        return None
    except NotFoundError:
        if missing_is_none:
            return None
        raise
    except (UnauthorizedError, BusyError):
        raise
    except ApiError:
        return None
