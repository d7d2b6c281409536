from typing import Any

import pytest

from engine.transform.set_host_users import set_host_users
from tests.unit.builders import context, make_config, make_job, pod_manifest
from tests.unit.transform.support import apply

ON = make_config("features: {userNamespaces: true}")


def test_root_in_a_pod_is_not_root_on_the_node_where_the_operator_asks_for_it() -> None:
    pod = apply(set_host_users, pod_manifest(), context(make_job(config=ON)))
    assert pod["spec"]["hostUsers"] is False
    assert apply(set_host_users, pod_manifest(), context(make_job())) == pod_manifest()


@pytest.mark.parametrize(
    "spec",
    [
        {"hostUsers": True},
        {"hostNetwork": True},
        {"hostPID": True},
        {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]},
        {"initContainers": [{"name": "i", "image": "x", "volumeDevices": [{"name": "d"}]}]},
    ],
)
def test_a_pod_that_asks_for_what_forbids_it_stays_as_it_is(spec: dict[str, Any]) -> None:
    manifest = pod_manifest(**spec)
    assert apply(set_host_users, manifest, context(make_job(config=ON))) == manifest
