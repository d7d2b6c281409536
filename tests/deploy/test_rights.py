"""Rights are least: every feature at work under the Role of its combination, by the audit log."""

import base64
import json
import subprocess
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.records import KEY
from tests.cluster.cluster import Cluster
from tests.cluster.helm import Helm
from tests.cluster.images import Images
from tests.cluster.quota import set_quota
from tests.deploy.account import Account, Right, account
from tests.support.api import Api, ApiError, Object
from tests.support.definitions import install_definitions
from tests.support.engine import COMMAND, Engine
from tests.support.job_specs import JOB_SPECS

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(600)]

QUICK = ['engine.pruneInterval="1s"', 'engine.leaseDuration="10s"']
SAVED = '{"volume": {"persistentVolumeClaim": {"claimName": "logs"}}}'
OPTIONAL: set[Right] = {
    ("list", "nodes"),
    ("list", "resourcequotas"),
    ("create", "events"),
    ("list", "events"),
}
UNPLAYED: set[Right] = {
    ("delete", "secrets"),
    ("patch", "secrets"),
    ("patch", "configmaps"),
}
"""What the story doesn't always need: the garbage collector may be first at what a crash has left,
and no TTL is edited while a pod runs. tests/e2e/test_kinds_of_fields.py uses the others.
"""
OVER: dict[str, Any] = {"ttlAfterFinished": {"success": "1s", "failure": "1s"}}
OWNS = {"script": "true", "secrets": {"TOKEN": {"value": "some-value"}}, **OVER}
ENGINES: dict[str, tuple[list[str], set[Right]]] = {
    "as it is": ([], set()),
    "all that can be on": (
        [
            "engine.prune=true",
            "engine.allowEmpty=true",
            f"engine.logs={SAVED}",
            'engine.rights={"podsEverywhere": true}',
        ],
        set(),
    ),
    "records everywhere, no Events": (
        ['engine.rights={"recordsEverywhere": true}', 'engine.config.features={"events": false}'],
        set(),
    ),
    "records everywhere, which are pruned": (
        ['engine.rights={"recordsEverywhere": true}', "engine.prune=true"],
        set(),
    ),
    "all that can be off": (
        ['engine.rights={"nodes": false, "quotas": false, "events": false}'],
        OPTIONAL,
    ),
    "all namespaces": (['engine.jobs={"allNamespaces": true, "namespaces": []}'], set()),
    "objects": (['engine.specs={"from": "objects"}', 'crds={"install": false}'], set()),
}


IN_SHORT = ("as it is", "all that can be on", "objects", "dry run of the client")


def in_short(settings: Iterable[str]) -> list[Any]:
    """Those that `make test-cluster` shows; the others are left to `make soak`."""
    marks = {one: () if one in IN_SHORT else (pytest.mark.soak,) for one in settings}
    return [pytest.param(one, marks=marks[one]) for one in settings]


@pytest.mark.parametrize("features", in_short(ENGINES))
def test_an_engine_uses_all_its_rights_and_is_refused_nothing(
    features: str, helm: Helm, cluster: Cluster, api: Api, images: Images, namespace: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    given, without = ENGINES[features]
    config = {
        "records": {"ttl": "1s"},
        "limits": {"allowedServiceAccounts": ["*"], "allowedSecrets": ["*"]},
    }
    said = [
        f"engine.config={json.dumps(config)}",
        f'engine.source="{source_in(namespace)}"',
        f'engine.jobs.namespaces=["{namespace}"]',
    ]
    settings = [*QUICK, *said, *given]
    documents = helm.template(settings=settings, release="ci", namespace=namespace)
    specs = tmp_path / "specs"
    specs.mkdir()
    files = Engine(cluster.kubeconfig, namespace, specs, images.busybox)
    author = replace(files, objects=features == "objects")
    if author.objects:
        install_definitions(api.client)
    set_quota(api, namespace, {"pods": 3})
    write_specs(author, images)
    for leftover in leftovers(files):
        api.create(f"{leftover['kind'].lower()}s", leftover, namespace)
    with (
        account(cluster, api, documents, tmp_path) as acting,
        running(acting, arguments_of(documents, tmp_path), tmp_path),
    ):
        play(author, api)
    # A record that is a status is never deleted, as the ConfigMaps of files are.
    assert_least(
        acting, without, UNPLAYED | {("delete", "configmaps")} if author.objects else UNPLAYED
    )


def source_in(namespace: str) -> str:
    """One of the test's own: who lists records everywhere finds those that another test left."""
    return f"rights-{namespace[-8:]}"


def assert_least(
    acting: Account, without: Collection[Right] = (), unplayed: Collection[Right] = ()
) -> None:
    """All that it has was used, but for what is unplayed; only what was taken away was refused."""
    time.sleep(0.5)  # an entry may follow its answer by a moment
    refused = acting.asked(refused=True) - set(without)
    never_used = acting.granted - acting.asked() - set(unplayed)
    assert (refused, never_used) == (set(), set())


def write_specs(author: Engine, images: Images) -> None:
    """Jobs that take what an engine may do: three have room at once."""
    over = OVER
    nowhere: dict[str, Any] = {"nodeSelector": {"disk": "none"}}
    author.spec("pulls", image=images.absent(), pullPolicy=["Always", "IfNotPresent"], **over)
    author.spec("backs-off", pullPolicy="Always", **nowhere)
    author.spec("owns", **OWNS)
    login = {"fromSecret": {"name": "login", "key": "token"}}
    author.spec("refers", script="true", secrets={"TOKEN": login}, **over)
    author.spec("waits", script="true", **over)
    author.spec("goes", script="true", **over)


def leftovers(author: Engine) -> Iterator[Object]:
    """What is in the way of a job: a Secret and a ConfigMap of its names, whose pod is gone."""
    author.spec("owns", **OWNS)
    rendered = author.run(
        "render", str(author.folder / "owns.yaml"), "-o", "json",
        f"--source={source_in(author.namespace)}", ends=0,
    )  # fmt: skip
    for manifest in rendered.result["items"]:
        name, uid = manifest["metadata"]["name"], str(uuid.uuid4())
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
        manifest["metadata"]["ownerReferences"] = [owner]
        if manifest["kind"] == "Secret":
            yield {**manifest, "data": {"OLD": base64.b64encode(b"old").decode()}}
        if manifest["kind"] == "ConfigMap":
            yield {**manifest, "data": {"old": "old"}}


def arguments_of(documents: list[Object], folder: Path) -> list[str]:
    """Those of the chart's container, with what is mounted there in a folder of ours."""
    (deployment,) = [one for one in documents if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (config,) = [one for one in documents if "engine.yaml" in one.get("data", {})]
    (folder / "engine.yaml").write_text(config["data"]["engine.yaml"])
    ours = {
        "/specs": str(folder / "specs"),
        "--metrics-address=:8080": "--metrics-address=127.0.0.1:0",
        "--config=/config/engine.yaml": f"--config={folder / 'engine.yaml'}",
        "--logs-dir=/logs": f"--logs-dir={folder / 'logs'}",
    }
    return [ours.get(argument, argument) for argument in container["args"]]


@contextmanager
def running(acting: Account, arguments: list[str], folder: Path) -> Iterator[None]:
    """The engine at work in the name of the account; it ends in order with the block."""
    log = folder / "engine.log"
    harness = Engine(acting.kubeconfig, "", folder, "")
    with log.open("w") as told:
        process = subprocess.Popen(
            [*COMMAND, *arguments, "-v"],
            env=harness.environment_of_process(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
        try:
            yield
        except BaseException as error:
            error.add_note(log.read_text())
            raise
        finally:
            process.terminate()
            process.wait(30)
    assert process.returncode == 0, log.read_text()


def play(author: Engine, api: Api) -> None:
    """Until every job has had its turn, what has expired is gone, and one spec is, too."""
    namespace = author.namespace
    secret = {"metadata": {"name": "login"}, "stringData": {"token": "some-value"}}
    api.create("secrets", secret, namespace)

    def pods(job: str) -> list[Object]:
        return api.list("pods", namespace, labels=f"jobs.engine/job={job}")

    (pod,) = api.wait(lambda: pods("backs-off"), "pod that no node takes", 180)
    image = pod["spec"]["containers"][0]["image"]
    waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
    state = {"name": "main", "image": image, "state": {"waiting": waiting}}
    status = {"containerStatuses": [{"ready": False, "restartCount": 0, "imageID": "", **state}]}
    api.patch("pods", f"{pod['metadata']['name']}/status", {"status": status}, namespace)

    expected = {
        "pulls": "ImagePullFailed",
        "backs-off": "ImagePullFailed",
        **dict.fromkeys(("owns", "refers", "waits", "goes"), "Succeeded"),
    }
    api.wait(lambda: reasons(author, api) == expected, "end of every job", 240)
    if author.objects:
        api.delete(JOB_SPECS, "goes", namespace)
    else:
        (author.folder / "goes.yaml").unlink()
    api.wait(lambda: "goes" not in reasons(author, api), "end of a record without a spec", 120)
    api.wait(lambda: not pods("owns"), "end of an expired pod", 120)


def reasons(author: Engine, api: Api) -> dict[str, str]:
    if author.objects:
        found = api.list(JOB_SPECS, author.namespace)
        return {one["metadata"]["name"]: one["status"].get("reason", "") for one in found}
    records = api.list("configmaps", author.namespace, labels="jobs.engine/component=record")
    return {
        record["metadata"]["labels"]["jobs.engine/job"]: json.loads(record["data"][KEY]).get(
            "reason"
        )
        for record in records
    }


WIDE = "cleaner.allNamespaces=true"
CLEANERS: dict[str, list[str]] = {
    "as it is": [],
    "pods": ['cleaner.kinds=["pods"]'],
    "dry run of the client": ['cleaner.dryRun="client"'],
    "dry run of the server": ['cleaner.dryRun="server"'],
    "other kinds": ['cleaner.kinds=["secrets", "deployments.apps"]'],
    "all namespaces": [WIDE, 'cleaner.selector="test=rights"'],
}
READ_AT_ONCE = 21
"""So many pods of jobs in one namespace, and their records are listed."""


@pytest.mark.parametrize("features", in_short(CLEANERS))
def test_a_cleaner_uses_all_its_rights_and_is_refused_nothing(
    features: str, helm: Helm, cluster: Cluster, api: Api, images: Images, namespace: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    settings = ['engine={"enabled": false}', "cleaner.enabled=true", *CLEANERS[features]]
    documents = helm.template(settings=settings, release="ci", namespace=namespace)
    (cronjob,) = [one for one in documents if one["kind"] == "CronJob"]
    pod = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    author = Engine(cluster.kubeconfig, namespace, tmp_path, images.busybox)
    labels = {"metadata": {"labels": {"test": "rights"}}}
    author.spec("runs", script="sleep 600", podPatch=labels)
    for number in range(READ_AT_ONCE):
        nowhere: dict[str, Any] = {"nodeSelector": {"disk": "none"}}
        author.spec(f"waits-{number}", podPatch=labels, **nowhere)
    author.reconcile("--wait=applied", ends=0)
    expired = {"metadata": {"annotations": {"jobs.engine/ttl": "0s"}}}
    for pod in api.list("pods", namespace):
        api.patch("pods", pod["metadata"]["name"], expired, namespace)
    with account(cluster, api, documents, tmp_path) as acting:
        prune = Engine(acting.kubeconfig, "", tmp_path, "")
        for _ in range(10):
            make_expired(api, namespace, images.busybox)
            with changing(api, namespace):
                done = prune.run(*arguments)
            assert done.code == 0 or "it keeps changing" in done.stdout, done.stderr + done.stdout
            if acting.granted <= acting.asked():
                break
    assert_least(acting)


def make_expired(api: Api, namespace: str, image: str) -> None:
    """Twenty of each kind; they are a second old when the cleaner has started."""
    metadata = {
        "generateName": "old-",
        "annotations": {"jobs.engine/ttl": "0s"},
        "labels": {"test": "rights"},
    }
    container = {"name": "main", "image": image}
    nowhere = {"containers": [container], "nodeSelector": {"disk": "none"}}
    match = {"test": "rights"}
    template = {"metadata": {"labels": match}, "spec": nowhere}
    deployment = {"replicas": 0, "selector": {"matchLabels": match}, "template": template}
    for _ in range(20):
        api.create("pods", {"metadata": metadata, "spec": nowhere}, namespace)
        for resource in ("secrets", "configmaps"):
            api.create(resource, {"metadata": metadata}, namespace)
    for _ in range(5):
        api.create("apps/v1/deployments", {"metadata": metadata, "spec": deployment}, namespace)


@contextmanager
def changing(api: Api, namespace: str) -> Iterator[None]:
    """Somebody else changes all of them again and again, while the cleaner looks at them."""
    over = threading.Event()

    def change(resource: str) -> None:
        number = 0
        while not over.is_set():
            for item in api.list(resource, namespace, labels="test=rights"):
                number += 1
                body = {"metadata": {"annotations": {"changed": str(number)}}}
                with suppress(ApiError):
                    api.patch(resource, item["metadata"]["name"], body, namespace)

    resources = ("pods", "secrets", "configmaps", "apps/v1/deployments")
    threads = [threading.Thread(target=change, args=(resource,)) for resource in resources]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
