"""What commands of pages meet: `<!-- scene: NAME -->` plays the function of that name."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from engine.sandbox import FOREVER, Run
from tests.component.pages.stage import Stage
from tests.support.client import Client
from tests.support.console import WrittenFile
from tests.support.pages import ROOT

IMAGE = "docker.io/library/alpine:3.20"


def an_empty_cluster(stage: Stage) -> None:
    """As a kubeconfig leads to one: nothing in it but what Kubernetes has."""
    stage.sandbox.node.will(Run(log=("hello from build",)), pod="build-*")


def the_namespace_ci(stage: Stage) -> None:
    """It is there, and the context's."""
    stage.sandbox.namespace("ci")
    stage.use("ci")


def a_registry_outage(stage: Stage) -> None:
    """docker.io is away, the node has the image; the job `test` fails by itself."""
    the_namespace_ci(stage)
    stage.sandbox.images.down("docker.io")
    stage.sandbox.images.cache(IMAGE)
    stage.spec("test", image=IMAGE, timeout="10m", script="exit 3", pullPolicy="IfNotPresent")
    stage.sandbox.node.will(
        Run(duration=0.3, exit_code=3, log=("1 of 12 tests failed",)), pod="test-*"
    )


def two_finished_jobs(stage: Stage) -> None:
    """`build` has succeeded at its second attempt, and `test` has failed."""
    a_registry_outage(stage)
    _build(stage, IMAGE)
    stage.engine("reconcile --once jobs")


def a_changed_spec(stage: Stage) -> None:
    """`build` has run, and has another image now."""
    the_namespace_ci(stage)
    _build(stage, IMAGE)
    stage.engine("reconcile --once jobs")
    _build(stage, "docker.io/library/alpine:3.21")


def _build(stage: Stage, image: str) -> None:
    stage.spec(
        "build", image=image, timeout="10m", pullPolicy="[Always, IfNotPresent]", script="make"
    )


def jobs_of_another_cluster(stage: Stage) -> None:
    """The specs are here, and no record."""
    the_namespace_ci(stage)
    for name in ("build", "test"):
        stage.spec(name, image=IMAGE, script="make")


def a_slow_job_and_a_failed_one(stage: Stage) -> None:
    """`slow` runs, and `test` has failed."""
    a_registry_outage(stage)
    stage.sandbox.node.will(Run(duration=FOREVER), pod="slow-*")
    stage.engine("reconcile --once jobs")
    stage.spec("slow", image=IMAGE, script="make", pullPolicy="IfNotPresent")
    stage.engine("reconcile --once jobs/slow.yaml --wait applied")


def a_folder_that_is_watched(stage: Stage) -> None:
    """One spec is good, the other is not. Both were written a minute ago."""
    the_namespace_ci(stage)
    stage.spec("late", image=IMAGE, script="make")
    stage.spec("broken", imgae=IMAGE, script="make")
    written_at = time.time() - 60
    for file in (stage.folder / "jobs").iterdir():
        os.utime(file, (written_at, written_at))


def a_cluster_with_troubles(stage: Stage) -> None:
    """No right to read logs, and a quota that is used up."""
    the_namespace_ci(stage)
    stage.sandbox.deny("get", "pods/log")
    stage.sandbox.quota("ci", "compute", pods="1")
    _pod(stage, "service")


def misspelt_fields(stage: Stage) -> None:
    """A field and a value that Kubernetes doesn't know."""
    context = "\n    runAsUsr: 1000\n    privileged: 'yes'"
    stage.spec("build", image=IMAGE, script="make", securityContext=context)


def specs_beyond_the_limits(stage: Stage) -> None:
    """What a pod patch asks for, and the operator forbids."""
    volume = "{name: data, image: {reference: evil.example/x}}"
    patch = f"\n    spec:\n      serviceAccountName: deployer\n      volumes: [{volume}]"
    config = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits:\n"
    limits = "  allowedServiceAccounts: [build-*]\n  allowedImages: [docker.io/library/*]\n"
    stage.write(WrittenFile("engine.yaml", config + limits))
    stage.spec("build", image=IMAGE, script="make", podPatch=patch)


def too_many_new_jobs(stage: Stage) -> None:
    """More than are meant to start at once."""
    the_namespace_ci(stage)
    for number in range(1, 25):
        stage.spec(f"report-{number:02}", image=IMAGE, script="make")


def objects_of_several_ages(stage: Stage) -> None:
    """As several tools leave them."""
    the_namespace_ci(stage)
    _pod(stage, "old", **{"cleaner.kubernetes.gitlab.org/ttl": "11700"})
    stage.sandbox.clock.advance(8400)
    _pod(stage, "young", **{"cleaner.kubernetes.gitlab.org/ttl": "11700"})
    _create(
        stage, "configmaps", "fixtures", **{"jobs.engine/ttl": "60", "jobs.engine/hold": "true"}
    )
    _create(stage, "secrets", "token", **{"jobs.engine/ttl": "soon"})
    _create(stage, "configmaps", "settings")
    stage.sandbox.clock.advance(3600)


def a_full_quota(stage: Stage) -> None:
    """`deploy` runs, and has the only place."""
    the_namespace_ci(stage)
    stage.sandbox.quota("ci", "jobs", scopes=["Terminating"], pods="1")
    stage.sandbox.node.will(Run(duration=FOREVER), pod="deploy-*")
    stage.spec("deploy", image=IMAGE, script="make")
    stage.engine("reconcile --once jobs --wait applied")
    stage.spec("build", image=IMAGE, script="make")


def a_private_registry(stage: Stage) -> None:
    """It knows one login, and the spec has none."""
    the_namespace_ci(stage)
    images = stage.sandbox.images
    images.registry("registry.example", images=["team/tool:*"], users={"ci": "right"})
    stage.spec("build", image="registry.example/team/tool:1", script="make")


def the_examples(stage: Stage) -> None:
    """A checkout."""
    the_namespace_ci(stage)
    shutil.copytree(ROOT / "examples", stage.folder / "examples")


def _pod(stage: Stage, name: str, **annotations: str) -> None:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": IMAGE}]}
    stage.sandbox.node.will(Run(duration=FOREVER), pod=name)
    _create(stage, "pods", name, spec=spec, **annotations)


def _create(
    stage: Stage, resource: str, name: str, /, spec: Any = None, **annotations: str
) -> None:
    body: dict[str, Any] = {"metadata": {"name": name, "annotations": annotations}}
    client = Client(stage.sandbox.url)
    path = f"/api/v1/namespaces/ci/{resource}"
    reply = client.post(path, {**body, "spec": spec} if spec else body)
    assert reply.code == 201, reply.body  # Created


SCENES: Mapping[str, Callable[[Stage], None]] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        an_empty_cluster,
        two_finished_jobs,
        a_changed_spec,
        jobs_of_another_cluster,
        a_slow_job_and_a_failed_one,
        a_folder_that_is_watched,
        a_cluster_with_troubles,
        misspelt_fields,
        specs_beyond_the_limits,
        too_many_new_jobs,
        objects_of_several_ages,
        a_full_quota,
        a_private_registry,
        the_examples,
    )
}
