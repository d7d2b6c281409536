from typing import Any

import pytest

from engine.transform.check_job import job_faults
from tests.unit.builders import make_job, pod_manifest, render

MISSING = "spec.restartPolicy is missing"
NO_MAIN = "none of spec.containers is named main"
TWICE = "two containers are named redis"


def told(**spec: Any) -> list[str]:
    return [fault.message for fault in job_faults(pod_manifest(**spec))]


def redis(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "redis", **fields}]


def test_a_pod_of_the_built_in_templates_has_no_fault() -> None:
    services = [{"name": "redis", "image": "redis:7"}]
    init = [{"name": "prepare", "image": "busybox", "script": "true"}]
    assert job_faults(render(make_job(services=services, initContainers=init)).pod) == ()


def test_a_sidecar_may_restart() -> None:
    assert told(initContainers=redis(restartPolicy="Always")) == []


@pytest.mark.parametrize("policy", [None, ""])
def test_a_pod_has_to_say_that_it_ends(policy: str | None) -> None:
    assert told(restartPolicy=policy) == [MISSING]


def test_the_policy_of_a_container_is_not_the_pods() -> None:
    assert told(restartPolicy=None, initContainers=redis(restartPolicy="Never")) == [MISSING]


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "never"])
def test_a_pod_that_is_restarted_is_no_job(policy: str) -> None:
    (fault,) = job_faults(pod_manifest(restartPolicy=policy))
    assert fault.message == f'spec.restartPolicy is "{policy}"'
    assert fault.path == ("spec", "restartPolicy")
    assert "it has to be Never" in fault.hint


@pytest.mark.parametrize("containers", [None, [], [{"name": "job"}]])
def test_a_pod_needs_its_main_container(containers: list[dict[str, Any]] | None) -> None:
    assert told(containers=containers) == [NO_MAIN]


def test_an_init_container_is_no_main_container() -> None:
    assert told(containers=redis(), initContainers=[{"name": "main"}]) == [NO_MAIN]


@pytest.mark.parametrize(
    "spec",
    [
        {"initContainers": redis() + redis()},
        {"containers": [{"name": "main"}, *redis(), *redis(), *redis()]},
        {"containers": [{"name": "main"}, *redis()], "initContainers": redis()},
    ],
)
def test_no_two_containers_share_a_name(spec: dict[str, Any]) -> None:
    assert told(**spec) == [TWICE]


def test_every_fault_is_told() -> None:
    spec = {"containers": redis() + [{"name": "a"}] * 2, "initContainers": redis()}
    assert told(restartPolicy="Always", **spec) == [
        'spec.restartPolicy is "Always"', NO_MAIN, TWICE, "two containers are named a",
    ]  # fmt: skip


def test_no_more_is_told_than_can_be_read() -> None:
    names = [{"name": str(number)} for number in range(500)]
    assert len(told(containers=names, initContainers=names)) == 100


def test_a_mount_needs_a_volume() -> None:
    mounted = {"name": "main", "image": "x", "volumeMounts": [{"name": "no", "mountPath": "/x"}]}
    (fault,) = job_faults(pod_manifest(restartPolicy="Never", containers=[mounted]))
    assert fault.message == 'container main mounts "no"'
    volumes = [{"name": "no", "emptyDir": {}}]
    assert not job_faults(pod_manifest(volumes=volumes, containers=[mounted]))
