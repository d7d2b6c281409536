"""The operator's limits on the final pod, whatever a template, a patch or a default made of it."""

from pathlib import Path
from typing import Any

import pytest

from engine.api.kubernetes_schema import SHIPPED
from engine.lifecycle.attempt import RenderConfig, try_render_attempt
from engine.lifecycle.record import Record
from engine.render.templates import Templates
from tests.unit.builders import document, lines_of, load, load_document, make_config, write

SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {name: build}
spec:
  image: alpine:3.20
"""
ROOT = Path(__file__).parents[3]


def rendered(
    limits: str, text: str, templates: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The pod as it is sent, and what is wrong with it."""
    config = make_config(f"limits: {limits}")
    loaded = load(SPEC + text, config)
    if loaded.problems:
        return {}, lines_of(loaded)
    (job,) = loaded.jobs
    rendering = RenderConfig(Templates(templates), "default", config.limits)
    policies = Record(job.key, "", job.spec_hash).next_policies(job)
    made, problems = try_render_attempt(rendering, job, 1, policies, None)
    return made.pod if made else {}, [str(problem) for problem in problems]


def told(limits: str, text: str) -> list[str]:
    return rendered(limits, text)[1]


@pytest.mark.parametrize(
    ("limits", "patch", "line"),
    [
        ("{maxTimeout: 1h}", "{restartPolicy: null}",
         ("job.yaml:1:1: spec.podPatch makes a pod in which spec.restartPolicy is missing (a job "
          "runs to completion: write Never, for without it the pod never ends)")),
        ("{allowedImages: ['alpine:*']}",
         "{volumes: [{name: v, image: {reference: evil}}]}",
         ("job.yaml:6:60: the pod's spec.volumes{v}.image.reference evil is not allowed "
          "(limits.allowedImages: alpine:*)")),
        ("{allowedImages: ['alpine:*']}",
         "{ephemeralContainers: [{name: debug, image: evil}]}",
         "job.yaml:6:64: the pod's spec.ephemeralContainers{debug}.image evil is not allowed"),
        ("{allowedImages: ['alpine:*']}",
         "{containers: [{name: x, image: evil}]}",
         "job.yaml:6:51: the pod's spec.containers{x}.image evil is not allowed"),
        ("{allowedImages: ['alpine:*']}",
         "{containers: [{name: x}]}",
         "job.yaml:6:34: the pod's spec.containers{x}.image is missing, which is not allowed"),
        ("{allowedPullPolicies: [Always]}",
         "{containers: [{name: main, imagePullPolicy: Never}]}",
         ("job.yaml:6:64: the pod's spec.containers{main}.imagePullPolicy Never is not allowed "
          "(limits.allowedPullPolicies: Always)")),
        ("{allowedPullPolicies: [Always]}",
         "{volumes: [{name: v, image: {reference: x, pullPolicy: Never}}]}",
         "job.yaml:6:75: the pod's spec.volumes{v}.image.pullPolicy Never is not allowed"),
        ("{maxGracePeriod: 1m}",
         "{terminationGracePeriodSeconds: 31536000}",
         ("job.yaml:6:52: the pod's spec.terminationGracePeriodSeconds 365d is longer than 1m "
          "(limits.maxGracePeriod)")),
        ("{maxGracePeriod: 1m}",
         "{containers: [{name: main, livenessProbe: {terminationGracePeriodSeconds: 61}}]}",
         "job.yaml:6:94: the pod's spec.containers{main}.livenessProbe.terminationGracePeriod"),
        ("{allowedServiceAccounts: [build-*]}",
         "{serviceAccountName: engine}",
         ("job.yaml:6:41: the pod's spec.serviceAccountName engine is not allowed "
          "(limits.allowedServiceAccounts: build-*)")),
        ("{allowedServiceAccounts: [build-*]}",
         "{serviceAccount: engine}",
         "job.yaml:6:37: the pod's spec.serviceAccount engine is not allowed"),
        ("{allowedServiceAccounts: [build-*]}",
         "{automountServiceAccountToken: true}",
         ("job.yaml:6:51: the pod's spec.automountServiceAccountToken gives it the service account "
          "default, which is not allowed")),
        ("{allowedServiceAccounts: []}",
         "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
         ("job.yaml:6:85: the pod's spec.volumes{v}.projected.sources[0].serviceAccountToken gives "
          "it the service account default, which is not allowed")),
    ],
)  # fmt: skip
def test_a_pod_patch_cant_exceed_a_limit(limits: str, patch: str, line: str) -> None:
    (found,) = told(limits, f"  podPatch: {{spec: {patch}}}\n")
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ("{containers: [{name: main, envFrom: [{secretRef: {name: admin}}]}]}",
         "containers{main}.envFrom[0].secretRef.name"),
        (("{initContainers: [{name: x, image: y, env: [{name: A, valueFrom: "
          "{secretKeyRef: {name: admin, key: k}}}]}]}"),
         "initContainers{x}.env{A}.valueFrom.secretKeyRef.name"),
        ("{imagePullSecrets: [{name: admin}]}", "imagePullSecrets{admin}.name"),
        ("{volumes: [{name: v, secret: {secretName: admin}}]}", "volumes{v}.secret.secretName"),
        ("{volumes: [{name: v, projected: {sources: [{secret: {name: admin}}]}}]}",
         "volumes{v}.projected.sources[0].secret.name"),
        ("{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: admin}}}]}",
         "volumes{v}.csi.nodePublishSecretRef.name"),
        ("{volumes: [{name: v, azureFile: {shareName: s, secretName: admin}}]}",
         "volumes{v}.azureFile.secretName"),
        ("{volumes: [{name: v, rbd: {monitors: [], image: i, secretRef: {name: admin}}}]}",
         "volumes{v}.rbd.secretRef.name"),
    ],
)  # fmt: skip
def test_no_way_leads_to_a_secret_that_isnt_allowed(patch: str, field: str) -> None:
    (found,) = told("{allowedSecrets: ['ci-*']}", f"  podPatch: {{spec: {patch}}}\n")
    assert found.startswith("job.yaml:6:")
    assert found.endswith(
        f"the pod's spec.{field} admin is not allowed (limits.allowedSecrets: ci-*)"
    )


def test_every_field_of_a_pod_that_refers_to_a_secret_is_known() -> None:
    """Of the tested release: a field that is new there is to be looked at."""
    definitions = SHIPPED.definitions["patch"].values()
    names = [name for kind in definitions for name in kind.get("properties", ())]
    found = {name for name in names if "secret" in name.lower()}
    path_on_the_node = {"secretFile"}
    known = {"secretName", "secret", "secretRef", "secretKeyRef", "nodePublishSecretRef"}
    assert found == known | {"imagePullSecrets"} | path_on_the_node


def test_the_jobs_own_secret_and_those_that_are_allowed_may_be_used() -> None:
    text = """  secrets: {A: {value: hunter2}, B: {fromSecret: {name: ci-token, key: k}}}
  registryCredentials:
    - {registry: r, username: u, password: {value: hunter2}}
    - {fromSecret: {name: ci-login}}
"""
    pod, lines = rendered("{allowedSecrets: ['ci-*']}", text)
    assert lines == []
    assert len(pod["spec"]["imagePullSecrets"]) == 2


def test_defaults_of_the_operator_are_held_to_the_limits_as_well() -> None:
    config = make_config(
        "limits: {maxGracePeriod: 1m}\n"
        "defaults: {podPatch: {spec: {terminationGracePeriodSeconds: 61}}}"
    )
    (job,) = load_document(document(), config).jobs
    rendering = RenderConfig(Templates(), "default", config.limits)
    _, (problem,) = try_render_attempt(rendering, job, 1, {}, None)
    assert str(problem).startswith(
        "job.yaml:1:1: the pod's spec.terminationGracePeriodSeconds 1m1s"
    )


def test_a_template_cant_exceed_a_limit(tmp_path: Path) -> None:
    built_in = (ROOT / "templates/job/pod.yaml.j2").read_text(encoding="utf-8")
    own = built_in.replace(
        "restartPolicy: Never", "restartPolicy: Never\n  serviceAccountName: x", 1
    )
    write(tmp_path, "job/pod.yaml.j2", own)
    _, found = rendered("{allowedServiceAccounts: []}", "", tmp_path)
    assert found == [
        (
            "job.yaml:1:1: the pod's spec.serviceAccountName x is not allowed "
            "(limits.allowedServiceAccounts: none)"
        )
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        "annotations: {jobs.engine/hold: 'true'}",
        "annotations: {jobs.engine/expires-at: '2099-01-01T00:00:00Z'}",
        "labels: {jobs.engine/component: record}",
        "finalizers: [example.com/never]",
        "ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: y}]",
    ],
)
def test_a_template_cant_set_what_holds_an_object_or_owns_it(tmp_path: Path, metadata: str) -> None:
    template = (
        "apiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: x, {metadata}}}\ndata: {{{{ config.data }}}}\n"
    )
    write(tmp_path, "job/configmap.yaml.j2", template)
    _, (line,) = rendered("{}", "  script: x\n", tmp_path)
    field = metadata.partition(":")[0]
    assert f"the template set job makes a ConfigMap in which metadata.{field}" in line
    assert line.endswith("is the engine's own")


def test_the_operators_patch_cant_set_it_either() -> None:
    config = make_config("defaults: {podPatch: {metadata: {finalizers: [example.com/never]}}}")
    (job,) = load_document(document(), config).jobs
    rendering = RenderConfig(Templates(), "default", config.limits)
    _, (problem,) = try_render_attempt(rendering, job, 1, {}, None)
    assert "spec.podPatch makes a pod in which metadata.finalizers is the engine's own" in str(
        problem
    )


def test_a_deadline_of_a_patch_is_capped_where_the_engine_sets_none() -> None:
    config = make_config("limits: {maxTimeout: 10m}\nfeatures: {activeDeadlineSeconds: false}")
    spec = document(podPatch={"spec": {"activeDeadlineSeconds": 601}}, timeout="10m")
    (job,) = load_document(spec, config).jobs
    rendering = RenderConfig(Templates(), "default", config.limits)
    _, (problem,) = try_render_attempt(rendering, job, 1, {}, None)
    assert "the pod's spec.activeDeadlineSeconds 10m1s is longer than 10m (limits.max" in str(
        problem
    )


def test_a_pod_without_a_grace_period_gets_the_longest_one_below_the_clusters() -> None:
    pod, _ = rendered("{maxGracePeriod: 10s}", "  podPatch: {spec: {hostname: h}}\n")
    assert pod["spec"]["terminationGracePeriodSeconds"] == 10
    pod, _ = rendered("{maxGracePeriod: 10s}",
                      "  podPatch: {spec: {terminationGracePeriodSeconds: 2}}\n")  # fmt: skip
    assert pod["spec"]["terminationGracePeriodSeconds"] == 2
    pod, _ = rendered("{maxGracePeriod: 1m}", "")
    assert "terminationGracePeriodSeconds" not in pod["spec"]


@pytest.mark.parametrize(
    ("allowed", "image", "policy"),
    [
        ("[Always]", "alpine:3.20", "Always"),
        ("[Never, IfNotPresent]", "alpine:3.20", "IfNotPresent"),
        ("[Never, Always]", "alpine:3.20", "Never"),
        ("[Never, Always]", "alpine:latest", "Always"),
        ("[IfNotPresent, Always]", "alpine", "Always"),
        ("[IfNotPresent]", "alpine", "IfNotPresent"),
        ("[Always, IfNotPresent]", "registry:5000/alpine", "Always"),
        ("[Always, IfNotPresent]", f"alpine@sha256:{'0' * 64}", "IfNotPresent"),
        ("[Always, IfNotPresent]", f"alpine:latest@sha256:{'0' * 64}", "Always"),
    ],
)
def test_a_policy_that_nobody_set_is_the_clusters_default_or_else_an_allowed_one(
    allowed: str, image: str, policy: str
) -> None:
    patch = (
        f"{{containers: [{{name: main, image: '{image}'}}, {{name: x, image: '{image}'}}], "
        f"volumes: [{{name: v, image: {{reference: '{image}'}}}}]}}"
    )
    pod, _ = rendered(f"{{allowedPullPolicies: {allowed}}}", f"  podPatch: {{spec: {patch}}}\n")
    policies = [container["imagePullPolicy"] for container in pod["spec"]["containers"]]
    assert [*policies, pod["spec"]["volumes"][0]["image"]["pullPolicy"]] == [policy] * 3


def test_without_the_limit_the_cluster_decides_on_the_policy() -> None:
    pod, _ = rendered("{}", "")
    assert "imagePullPolicy" not in pod["spec"]["containers"][0]


def test_no_more_is_told_of_a_pod_than_can_be_read() -> None:
    volumes = "\n".join(f"        - {{name: v{n}, image: {{reference: x}}}}" for n in range(900))
    patch = f"  podPatch:\n    spec:\n      volumes:\n{volumes}\n"
    assert len(told("{allowedImages: ['alpine:*']}", patch)) == 100


def test_no_more_is_told_of_a_patch_than_can_be_read() -> None:
    labels = {f"k{number}": "v" for number in range(900)}
    spec = document(podPatch={"metadata": {"labels": labels}})
    loaded = load_document(spec, make_config("limits: {allowPodPatch: [spec.hostname]}"))
    assert len(lines_of(loaded)) == 100
