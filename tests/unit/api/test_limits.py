"""The operator's limits on what a spec asks for, at the place where it does."""

from typing import Any

import pytest

from engine.api.checks import times_fit
from engine.api.effective import effective_spec
from engine.api.yaml_reader import read_yaml
from engine.errors import InvalidInputError
from tests.unit.builders import document, lines_of, load, load_document, make_config, make_job

SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {name: build}
spec:
  image: alpine:3.20
"""


def told(limits: str, text: str = "", **spec: Any) -> list[str]:
    config = make_config(f"limits: {limits}")
    if spec:
        return lines_of(load_document(document(**spec), config))
    return lines_of(load(SPEC + text, config))


@pytest.mark.parametrize(
    ("limits", "text", "line"),
    [
        ("{maxStartTimeout: 5m}", "  startTimeout: 10m",
         "job.yaml:6:17: warning: spec.startTimeout 10m is cut to 5m (limits.maxStartTimeout)"),
        ("{maxProtect: 30m}", "  disruption: protect",
         ("job.yaml:6:15: spec.disruption: protect with a timeout of 1h is not allowed "
          "(limits.maxProtect: 30m)")),
        ("{maxTtl: 2h}", "  ttl: 7d",
         "job.yaml:6:8: warning: spec.ttl 7d is cut to 2h (limits.maxTtl)"),
        ("{maxTtl: 2h}", "  ttlAfterFinished: {success: 1h, failure: 100w}",
         "job.yaml:6:44: warning: spec.ttlAfterFinished.failure 700d is cut to 2h (limits.maxTtl)"),
        ("{maxAttempts: 3}", "  retry: {max: 10, on: [DeadlineExceeded]}",
         ("job.yaml:6:16: a run could have 11 attempts: 1, 10 by spec.retry, 0 by further pull "
          "policies (limits.maxAttempts: 3)")),
        ("{maxAttempts: 2}", "  retry: {max: 1}\n  pullPolicy: [Always, Never]",
         ("job.yaml:6:16: a run could have 4 attempts: 1, 1 by spec.retry, 2 by further pull "
          "policies (limits.maxAttempts: 2)")),
        ("{maxAttempts: 1}", "  pullPolicy: [Always, Always, Always]",
         ("job.yaml:6:15: a run could have 3 attempts: 1, 0 by spec.retry, 2 by further pull "
          "policies (limits.maxAttempts: 1)")),
        ("{allowedPullPolicies: [Always]}", "  pullPolicy: [Never, Always]",
         ("job.yaml:6:15: warning: spec.pullPolicy [Never, Always] is cut to [Always] "
          "(limits.allowedPullPolicies: Always)")),
        ("{allowedServiceAccounts: [build-*]}", "  serviceAccountName: engine",
         ("job.yaml:6:23: the pod's spec.serviceAccountName engine is not allowed "
          "(limits.allowedServiceAccounts: build-*)")),
        ("{allowedServiceAccounts: []}", "  automountServiceAccountToken: true",
         ("job.yaml:6:33: the pod's spec.automountServiceAccountToken gives it the service "
          "account default, which is not allowed "
          "(limits.allowedServiceAccounts: none)")),
        ("{allowedSecrets: [ci-*]}", "  secrets: {T: {fromSecret: {name: admin, key: k}}}",
         ("job.yaml:6:36: the pod's spec.containers{main}.env{T}.valueFrom.secretKeyRef.name "
          "admin is not allowed "
          "(limits.allowedSecrets: ci-*)")),
        ("{allowedSecrets: []}", "  registryCredentials: [{fromSecret: {name: admin}}]",
         ("job.yaml:6:45: the pod's spec.imagePullSecrets{admin}.name admin is not allowed "
          "(limits.allowedSecrets: none)")),
        ("{allowPodPatch: []}", "  podPatch: {metadata: {labels: {a: b}}}",
         "job.yaml:6:13: spec.podPatch is not allowed (limits.allowPodPatch: none)"),
        ("{allowPodPatch: [metadata.labels]}", "  podPatch: {spec: {hostNetwork: true}}",
         ("job.yaml:6:21: spec.podPatch.spec.hostNetwork is not allowed "
          "(limits.allowPodPatch: metadata.labels)")),
        ("{maxTtl: 1d}", "  podPatch: {spec: {schedulingGates: [{name: evil.example/never}]}}",
         ("job.yaml:6:21: spec.podPatch.spec.schedulingGates is not allowed "
          "(limits.maxTtl: 1d)")),
        ("{maxStartTimeout: 5s, maxTimeout: 1m}",
         "  podPatch: {spec: {schedulingGates: [{name: evil.example/never}]}}",
         ("job.yaml:6:21: spec.podPatch.spec.schedulingGates is not allowed "
          "(limits.maxStartTimeout: 5s, limits.maxTimeout: 1m)")),
    ],
)  # fmt: skip
def test_a_limit_is_told_where_the_spec_exceeds_it(limits: str, text: str, line: str) -> None:
    assert told(limits, text + "\n") == [line]


def test_gates_are_free_where_no_limit_is_on_time() -> None:
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    assert told("{maxAttempts: 3}", podPatch={"spec": gates}) == []


def test_times_are_cut_to_their_limits() -> None:
    config = make_config("limits: {maxTimeout: 1h, maxStartTimeout: 5m, maxTtl: 2h}")
    after = {"success": "1h", "failure": "100w"}
    job = make_job(config=config, timeout="3h", startTimeout="1h", ttl="7d", ttlAfterFinished=after)
    assert (job.timeout, job.start_timeout, job.ttl) == (3600, 300, 7200)
    assert job.ttl_after_finished == {"success": 3600, "failure": 7200}


def test_a_ttl_that_nobody_set_is_cut_without_a_word() -> None:
    config = make_config("limits: {maxTtl: 70m}")
    loaded = load_document(document(), config)
    assert lines_of(loaded) == []
    assert loaded.jobs[0].ttl == 4200


def test_a_longest_ttl_in_which_a_job_cant_end_is_a_warning() -> None:
    assert told("{maxTtl: 1h}", "  timeout: 2h\n") == [
        (
            "job.yaml:5:3: warning: limits.maxTtl 1h is shorter than startTimeout + timeout "
            "(2h10m): a running job may be pruned (shorten timeout or startTimeout)"
        )
    ]


def test_a_ttl_without_an_end_is_an_error_where_there_is_a_longest_one() -> None:
    (own,), _ = read_yaml((SPEC + "  ttl: forever\n").encode(), "job.yaml")
    config = make_config("limits: {maxTtl: 7d}")
    effective = effective_spec(own, (), config, "ci")
    assert [str(found) for found in times_fit(effective)] == [
        "job.yaml:6:8: spec.ttl: forever is not allowed (limits.maxTtl: 7d)"
    ]


def test_a_hold_is_an_error_where_there_is_a_longest_ttl() -> None:
    assert told("{maxTtl: 7d}", "  hold: false\n") == []
    assert told("{maxTtl: 7d}", "  hold: true\n") == [
        "job.yaml:6:9: spec.hold: true is not allowed (limits.maxTtl: 7d)"
    ]


def test_a_time_after_the_outcome_that_means_nothing_is_told() -> None:
    (line,) = lines_of(load(SPEC + "  ttlAfterFinished: {failure: 99999w}\n"))
    assert line == "job.yaml:6:31: spec.ttlAfterFinished.failure: '99999w' is not a duration"


def test_attempts_count_after_the_policies_were_filtered() -> None:
    limits = "{maxAttempts: 1, allowedPullPolicies: [Always]}"
    (line,) = told(limits, pullPolicy=["Always", "Never"])
    assert "warning" in line


@pytest.mark.parametrize(
    ("image", "more", "count"),
    [("x", {}, 2), ("y", {}, 3), ("x", {"pullPolicy": "Never"}, 2), ("x", {"podPatch": {}}, 3)],
)
def test_attempts_count_the_lists_that_containers_take_from_the_job(
    image: str, more: dict[str, Any], count: int
) -> None:
    """Those of one image fall back together, as long as nobody changes an image afterwards."""
    patch = {"podPatch": more.pop("podPatch")} if "podPatch" in more else {}
    init = [{"name": "prepare", "image": image, **more}]
    spec = document(image="x", pullPolicy=["Always", "Never"], initContainers=init, **patch)
    for most in (count - 1, count):
        loaded = load_document(spec, make_config(f"limits: {{maxAttempts: {most}}}"))
        assert bool(loaded.jobs) is (most == count), lines_of(loaded)


def test_the_operators_own_defaults_are_cut_without_a_word() -> None:
    config = make_config(
        "limits: {allowedPullPolicies: [Always]}\ndefaults: {pullPolicy: [Never, Always]}"
    )
    loaded = load_document(document(), config)
    assert lines_of(loaded) == []
    assert loaded.jobs[0].policies == {"main": ("Always",)}


def test_a_spec_that_names_no_service_account_needs_none() -> None:
    assert told("{allowedServiceAccounts: []}", "  timeout: 1h\n") == []


# Pod patches


@pytest.mark.parametrize(
    ("allowed", "patch"),
    [
        ("spec", {"spec": {"hostNetwork": True, "containers": [{"name": "x", "image": "y"}]}}),
        ("spec.nodeSelector", {"spec": {"nodeSelector": {"disk": "ssd"}}}),
        ("spec.nodeSelector", {"spec": {"nodeSelector": {"$patch": "replace", "disk": "ssd"}}}),
        ("spec.tolerations", {"spec": {"tolerations": [{"operator": "Exists"}]}}),
        ("spec.containers.resources",
         {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 1}}}]}}),
        ("metadata.annotations.example.com/team",
         {"metadata": {"annotations": {"example.com/team": "web"}}}),
        ("metadata.labels", {"metadata": {"labels": {"a": None}}}),
        ("spec.volumes.emptyDir", {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
        ("spec.containers", {"spec": {"$setElementOrder/containers": [{"name": "main"}]}}),
    ],
)  # fmt: skip
def test_a_pod_patch_may_change_what_is_allowed(allowed: str, patch: dict[str, Any]) -> None:
    assert told(f"{{allowPodPatch: [{allowed}]}}", podPatch=patch) == []


@pytest.mark.parametrize(
    ("allowed", "patch", "field"),
    [
        ("spec.nodeSelector", {"spec": {"nodeName": "n"}}, "spec.nodeName"),
        ("spec.nodeSelector", {"spec": None}, "spec"),
        ("spec.nodeSelector", {"$patch": "replace", "spec": {"nodeSelector": {}}}, ""),
        ("spec.nodeSelector", {"spec": {"$retainKeys": ["nodeSelector"]}}, "spec"),
        ("spec.nodeSelector.disk", {"spec": {"nodeSelector": {}}}, "spec.nodeSelector"),
        ("spec.containers.resources", {"spec": {"containers": [{"name": "new"}]}},
         "spec.containers[0]"),
        ("spec.containers.resources",
         {"spec": {"containers": [{"name": "main", "resources": {}, "image": "evil"}]}},
         "spec.containers[0].image"),
        ("spec.containers.resources",
         {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}}, "spec.containers[0]"),
        ("spec.volumes.emptyDir", {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
         "spec.volumes[0].hostPath.path"),
        ("spec.hostname", {"spec": {"$setElementOrder/containers": []}},
         "spec.$setElementOrder/containers"),
        ("metadata.annotations.a", {"metadata": {"annotations": {"a.b/c": "d"}}},
         "metadata.annotations.a.b/c"),
    ],
)  # fmt: skip
def test_a_pod_patch_may_change_nothing_else(
    allowed: str, patch: dict[str, Any], field: str
) -> None:
    (line,) = told(f"{{allowPodPatch: [{allowed}]}}", podPatch=patch)
    assert f" spec.podPatch{'.' if field else ''}{field} is not allowed (limits.allow" in line


def test_the_operators_own_patch_is_not_limited() -> None:
    config = make_config(
        "limits: {allowPodPatch: []}\ndefaults: {podPatch: {spec: {priorityClassName: low}}}"
    )
    loaded = load_document(document(), config)
    assert lines_of(loaded) == []
    assert loaded.jobs[0].spec["podPatch"] == {"spec": {"priorityClassName": "low"}}


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ("{annotations: {jobs.engine/hold: 'true'}}",
         "job.yaml:6:39: spec.podPatch.metadata.annotations.jobs.engine/hold"),
        ("{annotations: {jobs.engine/expires-at: '2099-01-01T00:00:00Z'}}",
         "job.yaml:6:39: spec.podPatch.metadata.annotations.jobs.engine/expires-at"),
        ("{labels: {jobs.engine/run: mine}}",
         "job.yaml:6:34: spec.podPatch.metadata.labels.jobs.engine/run"),
        ("{finalizers: [example.com/never]}", "job.yaml:6:25: spec.podPatch.metadata.finalizers"),
        ("{ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: y}]}",
         "job.yaml:6:25: spec.podPatch.metadata.ownerReferences"),
    ],
)  # fmt: skip
def test_a_pod_patch_cant_set_what_holds_a_pod_or_owns_it(metadata: str, line: str) -> None:
    found = lines_of(load(f"{SPEC}  podPatch: {{metadata: {metadata}}}\n"))
    assert found == [f"{line} is the engine's own"]


# EngineConfig itself


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ("{allowPodPatch: [spec.nodeSelectr]}",
         ('engine.yaml:3:26: limits.allowPodPatch[0]: a pod has no field "spec.nodeSelectr" '
          "(name it as kubectl explain does: spec.nodeSelector, spec.containers.resources)")),
        ("{allowPodPatch: ['spec.containers[0].image']}",
         "engine.yaml:3:26: limits.allowPodPatch[0]: a pod has no field"),
        ("{maxTtl: 0}", "engine.yaml:3:18: limits.maxTtl is 0, which leaves a job no time"),
        ("{maxAttempts: 0}", "engine.yaml:3:23: limits.maxAttempts must be at least 1, not 0"),
    ],
)  # fmt: skip
def test_a_broken_limit_is_told_at_its_place(limits: str, line: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        make_config(f"limits: {limits}")
    assert str(error.value.problems[0]).startswith(line)
