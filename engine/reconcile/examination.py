"""Find out what `decide/doctor` goes by: requests that change nothing, and give up soon."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.cluster import api
from engine.cluster.access import REVIEWS, TIMEOUT, is_allowed
from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.cluster.leases import read_lease
from engine.cluster.server import OLDEST_SERVER, server_version
from engine.cluster.transport import JSON
from engine.decide.doctor.facts import Facts, NamespaceFacts
from engine.decide.doctor.rights import granted, needed
from engine.decide.lease import lease_name
from engine.errors import (
    ApiError,
    BusyError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from engine.podsecurity import Level
from engine.refs import Ref, Right

TOTAL_TIMEOUT = 30.0
"""Seconds for all requests, of which each has TIMEOUT: a server that crawls is a finding, too."""
_LIMIT_RANGES = Resource("LimitRange", "limitranges")
_SERVICE_ACCOUNTS = Resource("ServiceAccount", "serviceaccounts")
_REGISTRY = "type=kubernetes.io/dockerconfigjson"
_T = TypeVar("_T")


def examine(client: Client, namespaces: Iterable[str], source: str, pod_security: Level) -> Facts:
    """Errors: UnreachableError, BusyError or UnauthorizedError where nothing can be found out."""
    began = time.monotonic()
    ask = _Examiner(client, deadline=began + TOTAL_TIMEOUT)
    answer = ask.request("GET", "/version") or {}
    seconds = time.monotonic() - began
    now = client.now()
    skew = (now - datetime.now(UTC)).total_seconds()
    places = tuple(ask.examine_namespace(name, source) for name in namespaces)
    cluster_rights = frozenset(
        right for right in needed(in_cluster=True) if ask.is_allowed(right, "")
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


@dataclass(frozen=True, slots=True)
class _Examiner:
    """Requests of which each, and all together, take so long and no longer.

    Their answers are None where we may not ask; what keeps everything else from being found out is
    raised.
    """

    client: Client
    deadline: float
    """By the monotonic clock."""

    @property
    def timeout(self) -> float:
        """Seconds for the next request. Errors: UnreachableError where none are left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            words = f"it answers so slowly that not all was found out in {TOTAL_TIMEOUT:.0f}s"
            raise UnreachableError(words, where=self.client.server, hint="is it overloaded?")
        return min(left, TIMEOUT)

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """The answer."""
        return _read(lambda: self.client.request(method, path, body=body, timeout=self.timeout))

    def examine_namespace(self, name: str, source: str) -> NamespaceFacts:
        """Everything about one namespace."""
        client = self.client
        try:
            namespace = _read(
                lambda: client.request("GET", api.NAMESPACES.path("", name), timeout=self.timeout),
                missing_is_none=False,
            )
        except NotFoundError:
            return NamespaceFacts(name, is_missing=True)
        secrets = self._list(api.SECRETS, name, fields=_REGISTRY, accept=api.METADATA_LIST)
        return NamespaceFacts(
            name,
            namespace,
            rights=self._rights_in(name),
            quotas=self._list(api.RESOURCE_QUOTAS, name),
            limit_ranges=self._list(_LIMIT_RANGES, name),
            registry_secrets=None
            if secrets is None
            else frozenset(secret["metadata"]["name"] for secret in secrets),
            pull_secrets=self._pull_secrets(name),
            lease=_read(lambda: read_lease(client, name, lease_name(source), timeout=self.timeout)),
        )

    def _rights_in(self, namespace: str) -> frozenset[Right]:
        """By one review of all rules; one by one what an authorizer doesn't list."""
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        answer = self.request("POST", f"{REVIEWS}/selfsubjectrulesreviews", body) or {}
        status: Mapping[str, Any] = answer.get("status") or {"incomplete": True}
        rules = status.get("resourceRules") or ()
        wanted = needed(in_cluster=False)
        there = frozenset(right for right in wanted if granted(rules, right))
        if not status.get("incomplete"):
            return there
        others = (right for right in wanted if right not in there)
        return there | {right for right in others if self.is_allowed(right, namespace)}

    def is_allowed(self, right: Right, namespace: str) -> bool:
        """By a review of one right; "" asks for all namespaces."""
        return bool(_read(lambda: is_allowed(self.client, right, namespace, self.timeout)))

    def _pull_secrets(self, namespace: str) -> frozenset[str] | None:
        ref = Ref("ServiceAccount", namespace, "default")
        account = _read(lambda: api.get(self.client, ref, _SERVICE_ACCOUNTS, timeout=self.timeout))
        if account is None:
            return None
        return frozenset(str(one.get("name")) for one in account.get("imagePullSecrets") or ())

    def _list(
        self, resource: Resource, namespace: str, *, fields: str = "", accept: str = JSON
    ) -> list[dict[str, Any]] | None:
        query = [("limit", str(api.PAGE_SIZE))] + ([("fieldSelector", fields)] if fields else [])
        path = resource.path(namespace)
        try:
            answer = _read(
                lambda: api.list_page(
                    self.client, path, query, accept=accept, timeout=self.timeout
                ),
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
