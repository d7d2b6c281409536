"""`engine prune` on the real API server: exactly what outlived its TTL goes."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.api import CONFIG_MAPS, get_metadata
from engine.cluster.connect import connect
from engine.lifecycle.ownership import Marked
from engine.prune.candidate import PruneCandidate
from engine.prune.delete import Deleter
from engine.prune.result import PruneAction
from engine.prune.rule import Verdict, evaluate
from engine.refs import Ref
from tests.cluster.cluster import Cluster
from tests.support.api import Api
from tests.support.engine import CommandResult, Engine
from tests.support.webhook import denying_webhook

pytestmark = [pytest.mark.cluster]

TTL = "jobs.engine/ttl"
FOREIGN = ("cleaner.kubernetes.gitlab.org/ttl", "pod-cleanup.gitlab.com/ttl", "janitor/ttl")


class Namespace:
    """A namespace of the real cluster, and `engine prune` on it."""

    def __init__(self, engine: Engine, api: Api, namespace: str) -> None:
        self.engine = engine
        self.api = api
        self.namespace = namespace

    def config_map(self, name: str, annotations: dict[str, str], **metadata: Any) -> None:
        body = {"metadata": {"name": name, "annotations": annotations, **metadata}}
        self.api.create("configmaps", body, self.namespace)

    def pod(self, name: str, annotations: dict[str, str], phase: str, **metadata: Any) -> None:
        """A pod that no node takes, in the phase that is wanted."""
        body = {
            "metadata": {"name": name, "annotations": annotations, **metadata},
            "spec": {
                "nodeSelector": {"no": "such-node"},
                "containers": [{"name": "main", "image": "none"}],
            },
        }
        self.api.create("pods", body, self.namespace)
        if phase != "Pending":
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
            kind = "application/merge-patch+json"
            patch = {"status": {"phase": phase}}
            assert self.api.client.call("PATCH", path, patch, content_type=kind).code == 200

    def prune(self, *arguments: str) -> CommandResult:
        return self.engine.run("prune", "-n", self.namespace, "-o", "json", *arguments)

    def names(self, resource: str) -> list[str]:
        found = self.api.list(resource, self.namespace)
        return sorted(i["metadata"]["name"] for i in found if i["metadata"]["name"] != ROOT_CA)


ROOT_CA = "kube-root-ca.crt"


@pytest.fixture
def place(cluster: Cluster, api: Api, namespace: str, tmp_path: Path) -> Namespace:
    return Namespace(Engine(cluster.kubeconfig, namespace, tmp_path, "none"), api, namespace)


def actions(run: CommandResult) -> dict[str, str]:
    return {entry["name"]: entry["action"] for entry in run.result["pruned"]}


def reason(run: CommandResult, name: str) -> str:
    (entry,) = [entry for entry in run.result["pruned"] if entry["name"] == name]
    return str(entry["reason"])


def expire() -> None:
    """Creation times are whole seconds, and a TTL has to be over, not just up."""
    time.sleep(3.1)


def test_of_pods_in_every_phase_with_every_annotation_exactly_the_expired_go(
    place: Namespace,
) -> None:
    past, future = (
        (datetime.now(UTC) + timedelta(hours=h)).strftime("%Y-%m-%dT%H:%M:%SZ") for h in (-1, 1)
    )
    expired = dict.fromkeys((TTL, *FOREIGN), "1") | {"jobs.engine/expires-at": past}
    living = dict(zip((TTL, *FOREIGN), ("11700", "3h15m", "7d", "1w"), strict=True)) | {
        "jobs.engine/expires-at": future
    }
    formats = {f"format-{at}": text for at, text in enumerate(("1s", "1000ms", "0", " 1 "))}
    for phase in ("Pending", "Running", "Succeeded", "Failed"):
        for at, name in enumerate(expired):
            place.pod(f"expired-{phase.lower()}-{at}", {name: expired[name]}, phase)
            place.pod(f"living-{phase.lower()}-{at}", {name: living[name]}, phase)
    for name, text in formats.items():
        place.pod(f"expired-{name}", {TTL: text}, "Running")
    place.pod("living-forever", {"janitor/ttl": "forever"}, "Failed")
    place.pod("living-held", {TTL: "1", "jobs.engine/hold": "true"}, "Failed")
    place.pod("living-invalid", {TTL: "1", "janitor/ttl": "soon"}, "Failed")
    place.pod("living-unmarked", {}, "Failed")
    expire()
    run = place.prune(*(part for name in FOREIGN[1:] for part in ("--annotation", name)))
    assert run.code == 0, run.stderr
    left = place.names("pods")
    assert [name for name in left if not name.startswith("living")] == []
    assert len(left) == 20 + 4
    found = actions(run)
    assert {a for name, a in found.items() if name.startswith("expired")} == {"deleted"}
    assert len([name for name in found if name.startswith("expired")]) == 20 + 4
    assert found["living-held"] == found["living-forever"] == "protected"
    assert found["living-invalid"] == "invalid"
    assert "living-unmarked" not in found


def test_secrets_and_configmaps_go_too_and_only_those_of_the_selector(place: Namespace) -> None:
    place.config_map("mine", {TTL: "1"}, labels={"team": "web"})
    place.config_map("other", {TTL: "1"})
    secret = {"metadata": {"name": "s", "annotations": {TTL: "1"}, "labels": {"team": "web"}}}
    place.api.create("secrets", secret, place.namespace)
    expire()
    run = place.prune("-l", "team=web")
    assert actions(run) == {"mine": "deleted", "s": "deleted"}
    assert place.names("configmaps") == ["other"]


def test_several_namespaces_can_be_named(place: Namespace) -> None:
    place.config_map("a", {TTL: "1"})
    expire()
    run = place.engine.run("prune", "-n", "default", "-n", place.namespace, "-o", "json")
    assert run.code == 0, run.stderr
    assert actions(run)["a"] == "deleted"


def test_what_another_object_owns_goes_with_its_owner_and_not_before(place: Namespace) -> None:
    place.config_map("owner", {})
    uid = place.api.get("configmaps", "owner", place.namespace)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    place.config_map("owned", {TTL: "1"}, ownerReferences=[owner])
    expire()
    run = place.prune()
    assert run.code == 0
    assert reason(run, "owned") == "goes with its owner configmap/owner"
    assert place.names("configmaps") == ["owned", "owner"]


def test_a_ttl_that_grew_after_the_list_keeps_the_object(place: Namespace) -> None:
    place.config_map("grown", {TTL: "1"})
    expire()
    deleter, target = _as_listed(place, "grown")
    patch = {"metadata": {"annotations": {TTL: "7d"}}}
    place.api.patch("configmaps", "grown", patch, place.namespace)
    entry = deleter.delete(target, "ttl 1s", _judge(deleter))
    assert entry is not None
    assert entry.action is PruneAction.KEPT
    assert "expires in" in entry.reason
    assert place.names("configmaps") == ["grown"]


def test_what_was_made_again_under_the_same_name_stays(place: Namespace) -> None:
    place.config_map("again", {TTL: "1"})
    expire()
    deleter, target = _as_listed(place, "again")
    place.api.delete("configmaps", "again", place.namespace)
    place.config_map("again", {TTL: "1h"})
    entry = deleter.delete(target, "ttl 1s", _judge(deleter))
    assert entry is not None
    assert entry.action is PruneAction.KEPT
    assert place.names("configmaps") == ["again"]


def test_what_was_touched_but_is_still_expired_goes(place: Namespace) -> None:
    place.config_map("touched", {TTL: "1"})
    expire()
    deleter, target = _as_listed(place, "touched")
    place.api.patch("configmaps", "touched", {"data": {"a": "b"}}, place.namespace)
    entry = deleter.delete(target, "ttl 1s", _judge(deleter))
    assert entry is not None
    assert entry.action is PruneAction.DELETED
    assert place.names("configmaps") == []


def test_what_is_gone_already_is_no_failure(place: Namespace) -> None:
    place.config_map("gone", {TTL: "1"})
    deleter, target = _as_listed(place, "gone")
    place.api.delete("configmaps", "gone", place.namespace)
    assert deleter.delete(target, "ttl 1s", _judge(deleter)) is None


def test_a_finalizer_is_named_and_the_others_still_go(place: Namespace) -> None:
    place.config_map("held", {TTL: "1"}, finalizers=["example.com/wait"])
    place.config_map("free", {TTL: "1"})
    expire()
    try:
        run = place.prune()
        assert run.code == 1
        assert actions(run) == {"held": "failed", "free": "deleted"}
        assert reason(run, "held").endswith("; waits for finalizer example.com/wait")
        time.sleep(1.1)
        again = place.prune()
        assert again.code == 1
        assert reason(again, "held") == "is being deleted, waits for finalizer example.com/wait"
    finally:
        patch = {"metadata": {"finalizers": None}}
        place.api.patch("configmaps", "held", patch, place.namespace)


def test_a_webhook_that_denies_is_told_in_its_own_words_and_the_others_still_go(
    place: Namespace, tmp_path: Path
) -> None:
    guarded = {"guarded": place.namespace[:63]}
    place.config_map("guarded", {TTL: "1"}, labels=guarded)
    place.config_map("free", {TTL: "1"})
    expire()
    with denying_webhook(place.api, place.namespace, "configmaps", tmp_path):
        place.api.wait(lambda: _is_denied(place), "webhook in force")
        run = place.prune()
        asked = place.prune("--dry-run=server")
    assert run.code == 1
    assert actions(run) == {"guarded": "failed", "free": "deleted"}
    words = 'denied by a webhook: admission webhook "guard.example.com" denied the request: '
    assert reason(run, "guarded") == f"{words}not on a Friday"
    assert actions(asked) == {"guarded": "failed"}


def test_a_right_that_is_missing_is_named_and_the_other_kinds_still_go(
    place: Namespace, cluster: Cluster
) -> None:
    place.config_map("a", {TTL: "1"})
    secret = {"metadata": {"name": "s", "annotations": {TTL: "1"}}}
    place.api.create("secrets", secret, place.namespace)
    role = {
        "metadata": {"name": "half"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "secrets", "configmaps"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["delete"]},
        ],
    }
    user = f"half-{place.namespace[-8:]}"
    _grant(place, role, user)
    place.engine.kubeconfig = cluster.kubeconfig_for(user)
    expire()
    run = place.prune()
    assert run.code == 1
    assert actions(run) == {"a": "deleted", "s": "failed"}
    assert reason(run, "s").startswith("forbidden: ")
    assert 'cannot delete resource "secrets"' in reason(run, "s")


def test_deployments_go_by_the_same_rule(place: Namespace) -> None:
    place.api.create("apps/v1/deployments", _deployment("old", "1"), place.namespace)
    place.api.create("apps/v1/deployments", _deployment("new", "1h"), place.namespace)
    expire()
    run = place.prune("--kinds", "deployments.apps,replicasets.apps,configmaps")
    assert run.code == 0, run.stderr
    found = actions(run)
    assert (found.pop("old"), found.pop("new")) == ("deleted", "kept")
    assert set(found.values()) == {"kept"}, "replica sets go with their deployments"
    assert place.names("apps/v1/deployments") == ["new"]


def test_custom_resources_go_by_the_same_rule(place: Namespace, widgets: str) -> None:
    owner = place.api.create(widgets, _widget(widgets, "old", {TTL: "1"}), place.namespace)
    place.api.create(widgets, _widget(widgets, "new", {TTL: "1h"}), place.namespace)
    place.api.create(
        widgets, _widget(widgets, "held", {TTL: "1", "jobs.engine/hold": "true"}), place.namespace
    )
    place.api.create(widgets, _widget(widgets, "owned", {TTL: "1"}, owner), place.namespace)
    place.api.create(widgets, _widget(widgets, "plain", {}), place.namespace)
    group, _, plural = widgets.split("/")
    expire()

    run = place.prune("--kinds", f"{plural}.{group},configmaps", "--dry-run=server")
    assert run.code == 0, run.stderr
    assert len(place.names(widgets)) == 5
    run = place.prune("--kinds", f"{plural}.{group},configmaps")

    assert run.code == 0, run.stderr
    assert actions(run) == {"old": "deleted", "new": "kept", "held": "protected", "owned": "kept"}
    left = ["held", "new", "plain"]
    place.api.wait(lambda: place.names(widgets) == left, "end of the owner and what it owned")


@pytest.fixture
def widgets(api: Api, namespace: str) -> Iterator[str]:
    """The path of a custom resource that is there while the test runs."""
    group = f"{namespace[-8:]}.engine.test"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    definitions, name = "apiextensions.k8s.io/v1/customresourcedefinitions", f"widgets.{group}"
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    api.create(definitions, {"metadata": {"name": name}, "spec": spec})

    def served() -> bool:
        return api.client.call("GET", f"/apis/{group}/v1/widgets").code == 200

    api.wait(served, "custom resource")
    yield f"{group}/v1/widgets"
    api.delete(definitions, name)


def _widget(
    widgets: str, name: str, annotations: dict[str, str], owner: dict[str, Any] | None = None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "annotations": annotations}
    if owner is not None:
        of = {key: owner[key] for key in ("apiVersion", "kind")}
        of |= {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [of]
    return {"apiVersion": widgets.rpartition("/")[0], "kind": "Widget", "metadata": metadata}


def test_the_table_has_a_line_for_each_object_and_a_summary_of_what_stays(place: Namespace) -> None:
    place.config_map("gone", {TTL: "1"})
    place.config_map("young", {TTL: "1h"})
    place.config_map("held", {TTL: "1", "jobs.engine/hold": "true"})
    expire()
    run = place.engine.run("prune", "-n", place.namespace, "--kinds", "configmaps", "-v")
    lines = {line.split()[1]: line.split()[0] for line in run.stdout.splitlines()}
    where = f"configmap/{place.namespace}"
    assert lines == {
        f"{where}/gone": "deleted", f"{where}/young": "kept", f"{where}/held": "protected",
    }  # fmt: skip
    assert "1 deleted, 1 kept, 1 protected" in run.stderr


def _as_listed(place: Namespace, name: str) -> tuple[Deleter, PruneCandidate]:
    client = connect(str(place.engine.kubeconfig)).client
    metadata = get_metadata(client, Ref("ConfigMap", place.namespace, name))
    assert metadata is not None
    deleter = Deleter(client)
    return deleter, PruneCandidate(CONFIG_MAPS, metadata, Marked((TTL,)))


def _judge(deleter: Deleter) -> Any:
    def again(candidate: PruneCandidate) -> Verdict | None:
        return evaluate(candidate.metadata, deleter.client.now())

    return again


def _is_denied(place: Namespace) -> bool:
    path = f"/api/v1/namespaces/{place.namespace}/configmaps/guarded"
    return place.api.client.call("DELETE", path, {"dryRun": ["All"]}).code == 403


def _grant(place: Namespace, role: dict[str, Any], user: str) -> None:
    rbac = "rbac.authorization.k8s.io/v1"
    place.api.create(f"{rbac}/roles", role, place.namespace)
    binding = {
        "metadata": {"name": role["metadata"]["name"]},
        "roleRef": {"kind": "Role", "name": role["metadata"]["name"], "apiGroup": rbac[:-3]},
        "subjects": [{"kind": "User", "name": user, "apiGroup": rbac[:-3]}],
    }
    place.api.create(f"{rbac}/rolebindings", binding, place.namespace)


def _deployment(name: str, ttl: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "main", "image": "none"}]
    return {
        "metadata": {"name": name, "annotations": {TTL: ttl}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
