"""The cleaner's CronJob fires, for one namespace, for another one, for all of them, and dry."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.helm import Helm
from tests.cluster.images import Images
from tests.deploy.conftest import RESTRICTED
from tests.deploy.release import Release
from tests.support.api import Api

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(600)]

TTL = "cleaner.kubernetes.gitlab.org/ttl"
KINDS = ("pods", "secrets", "configmaps")


@pytest.fixture
def places(api: Api, restricted: str) -> Iterator[dict[str, str]]:
    """A namespace for each of the cleaners, all but its own one in another than itself."""
    found = {"own": restricted}
    for name in ("other", "everywhere", "dry"):
        found[name] = f"{name}-{restricted[-8:]}"
        labels = {"engine-test": "true", **RESTRICTED}
        api.create("namespaces", {"metadata": {"name": found[name], "labels": labels}})
    yield found
    for name in found.values():
        api.client.call("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        if name != restricted:
            api.client.call("DELETE", f"/api/v1/namespaces/{name}")


def test_each_takes_what_has_outlived_its_ttl_where_it_is_meant_to_with_what_that_owns(
    helm: Helm,
    cluster: Cluster,
    repository: str,
    api: Api,
    images: Images,
    places: dict[str, str],
    tmp_path: Path,
) -> None:
    cleaners: dict[str, dict[str, Any]] = {
        "own": {},
        "other": {"namespaces": [places["other"]]},
        "everywhere": {"allNamespaces": True, "selector": f"test={places['everywhere']}"},
        "dry": {"namespaces": [places["dry"]], "dryRun": "client"},
    }
    everything = {(kind, f"runner-{age}") for kind in KINDS for age in ("5", "11700")}
    young = {entry for entry in everything if entry[1] == "runner-11700"}
    since = cluster.audit_position()
    for place in places.values():
        api.wait(partial(api.find, "serviceaccounts", "default", place), "service account")
        for ttl in ("5", "11700"):
            expiring(api, place, images.busybox, ttl)
    for name, cleaner in cleaners.items():
        values = {
            "image": {"repository": repository},
            "engine": {"enabled": False},
            "cleaner": {"enabled": True, "schedule": "* * * * *", **cleaner},
        }
        Release(helm, cluster, tmp_path, places["own"], name).helm("install", values)

    def fired() -> bool:
        """All of them, and came to a good end."""
        ended = {
            job["metadata"]["ownerReferences"][0]["name"]
            for job in api.list("batch/v1/jobs", places["own"])
            if job.get("status", {}).get("succeeded")
        }
        return ended == {f"{name}-engine-cleaner" for name in cleaners}

    api.wait(fired, "end of a run of each CronJob", 240)
    expected = {name: everything if name == "dry" else young for name in places}

    def found() -> bool:
        return {name: left(api, place) for name, place in places.items()} == expected

    api.wait(found, f"{expected} and no more")
    refused = [
        entry["requestURI"]
        for entry in cluster.audit_entries("engine/", since)
        if f":{places['own']}:" in entry["user"].get("username", "")
        and entry["responseStatus"]["code"] == 403
    ]
    assert refused == []


def expiring(api: Api, namespace: str, image: str, ttl: str) -> None:
    """A pod as another runner makes it, with a Secret and a ConfigMap that it owns."""
    container = {
        "name": "main",
        "image": image,
        "command": ["sleep", "600"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    name, labels = f"runner-{ttl}", {"test": namespace}
    pod = {
        "metadata": {"name": name, "labels": labels, "annotations": {TTL: ttl}},
        "spec": {
            "containers": [container],
            "securityContext": security,
            "terminationGracePeriodSeconds": 0,
        },
    }
    made = api.create("pods", pod, namespace)
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    for resource in ("secrets", "configmaps"):
        api.create(resource, {"metadata": {"name": name, "ownerReferences": [owner]}}, namespace)


def left(api: Api, namespace: str) -> set[tuple[str, str]]:
    return {
        (resource, one["metadata"]["name"])
        for resource in KINDS
        for one in api.list(resource, namespace)
        if one["metadata"]["name"].startswith("runner-")
    }
