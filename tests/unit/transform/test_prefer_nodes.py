import copy
import re
from typing import Any

import pytest

from engine.api.kubernetes_schema import SHIPPED
from engine.api.schema import check_manifest
from engine.errors import SourceLocation
from engine.transform.prefer_nodes import prefer_nodes
from tests.unit.builders import pod_manifest

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(*hosts: str) -> dict[str, Any]:
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [*hosts]}
    return {"weight": 100, "preference": {"matchExpressions": [wanted]}}


def test_hosts_are_preferred_beside_what_the_spec_asks_for() -> None:
    own = {"weight": 7, "preference": {"matchFields": []}}
    affinity = {
        "podAntiAffinity": {"x": 1},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}, PREFERRED: [own]},
    }
    pod = pod_manifest(affinity=affinity)
    before = copy.deepcopy(pod)
    found = prefer_nodes(pod, [("a", "b"), (), ("b",)])["spec"]["affinity"]
    assert pod == before
    assert found["nodeAffinity"].pop(PREFERRED) == [own, term("a", "b"), term("b")]
    del before["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    assert found == before["spec"]["affinity"]


def test_a_pod_without_affinity_gets_one_and_without_hosts_stays_as_it_is() -> None:
    pod = pod_manifest()
    assert prefer_nodes(pod, [("a",)])["spec"]["affinity"] == {
        "nodeAffinity": {PREFERRED: [term("a")]}
    }
    assert prefer_nodes(pod, [(), ()]) is pod


@pytest.mark.parametrize("affinity", ["x", {"nodeAffinity": []}, {"nodeAffinity": {PREFERRED: {}}}])
def test_an_affinity_that_nothing_can_be_added_to_is_refused(affinity: Any) -> None:
    """A template may make anything: it is checked before the transforms."""
    pod = pod_manifest(affinity=affinity)
    fault = next(check_manifest(pod, SHIPPED, lambda _: SourceLocation("")))
    assert re.match(r"spec\.affinity.* must be a", fault.message)
