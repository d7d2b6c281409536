"""What refuses a write: a webhook, or a right that is missing; on either cluster, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.sandbox import Fault, Refuse
from tests.cluster.cluster import Cluster
from tests.support.api import Api, Object
from tests.support.clusters import ClusterUnderTest, SandboxCluster
from tests.support.engine import Engine
from tests.support.webhook import refusing_webhook

WORDS = "not on a Friday"
_DENIED = f'admission webhook "refuse.example.com" denied the request: {WORDS}'
RBAC = "rbac.authorization.k8s.io"
_RIGHTS = {
    "": {
        "pods": {"create", "get", "list", "watch", "patch", "delete"},
        "secrets": {"create", "get", "delete"},
        "configmaps": {"create", "get", "list", "watch", "update", "delete"},
        "resourcequotas": {"list", "watch"},
        "events": {"create", "list"},
    },
    "coordination.k8s.io": {"leases": {"list", "create", "update"}},
    "jobs.engine": {
        "jobspecs": {"get", "list", "watch"},
        "jobspecs/status": {"update"},
        "jobdefaults": {"list", "watch"},
    },
}
"""As docs/operations.md has them."""


@contextmanager
def webhook_refuses(
    target: ClusterUnderTest, folder: Path, resource: str, ending: str
) -> Iterator[None]:
    """Nothing of `resource` whose name ends so can be created or updated."""
    if not isinstance(target, SandboxCluster):
        api = Api.from_kubeconfig(target.kubeconfig)
        with refusing_webhook(api, target.namespace, resource, ending, folder):
            yield
        return
    denied, faults = Refuse(403, "Forbidden", _DENIED), target.sandbox.faults
    rules = [
        faults.add(Fault(denied, verb=verb, resource=resource, name=f"*{ending}", times=None))
        for verb in ("create", "update")
    ]
    yield
    for rule in rules:
        faults.remove(rule)


@contextmanager
def right_is_missing(
    target: ClusterUnderTest, cluster: Cluster | None, engine: Engine, verb: str, resource: str
) -> Iterator[None]:
    """`engine` may do everything that it has to but this; afterwards that as well."""
    if isinstance(target, SandboxCluster):
        denial = target.sandbox.deny(verb, resource, namespace=target.namespace)
        yield
        target.sandbox.allow(denial)
        return
    assert cluster is not None
    api = Api.from_kubeconfig(target.kubeconfig)
    user = bind_rights(api, target.namespace, verb, resource)
    engine.kubeconfig = cluster.kubeconfig_for(user)
    yield
    rules = {"rules": [*rights_without("", "")]}
    api.patch(f"{RBAC}/v1/roles", "engine", rules, target.namespace)


def bind_rights(api: Api, namespace: str, verb: str = "", resource: str = "") -> str:
    """The name of a user who may do what the engine has to, but this; by the role `engine`."""
    user = f"limited-{namespace}"
    role: Object = {
        "metadata": {"name": "engine"},
        "rules": [*rights_without(verb, resource)],
    }
    api.create(f"{RBAC}/v1/roles", role, namespace)
    binding = {
        "metadata": {"name": "engine"},
        "roleRef": {"kind": "Role", "name": "engine", "apiGroup": RBAC},
        "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
    }
    api.create(f"{RBAC}/v1/rolebindings", binding, namespace)
    return user


def rights_without(verb: str, resource: str) -> Iterator[Object]:
    """Rules of a role."""
    for group, resources in _RIGHTS.items():
        for name, verbs in resources.items():
            if left := sorted(verbs - {verb} if name == resource else verbs):
                yield {"apiGroups": [group], "resources": [name], "verbs": left}
