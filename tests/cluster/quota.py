"""Resource quotas that are in force when the call returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.api import Api, Object


def set_quota(
    api: Api,
    namespace: str,
    hard: Mapping[str, str | int],
    scopes: Sequence[str] | None = None,
    name: str = "q",
) -> Object:
    """Create a ResourceQuota and wait until the server has counted what is there.

    Guarantees: a create after this is judged by the quota with its usage known.
    """
    limits = {key: str(value) for key, value in hard.items()}
    spec: Object = {"hard": limits}
    if scopes:
        spec["scopes"] = list(scopes)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}
    api.create("resourcequotas", quota, namespace)

    def counted() -> Object | None:
        found = api.get("resourcequotas", name, namespace)
        status = found.get("status", {})
        known = status.get("hard", {}).keys() & status.get("used", {}).keys()
        return found if known >= limits.keys() else None

    return api.wait(counted, f"usage in quota {namespace}/{name}")
