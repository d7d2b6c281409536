import copy

from engine.transform.set_owner_reference import set_owner_reference
from tests.unit.builders import other_manifest


def test_the_pod_becomes_the_only_owner() -> None:
    manifest = other_manifest("Secret")
    before = copy.deepcopy(manifest)
    owned = set_owner_reference(manifest, pod="build-1", uid="u-1")
    assert owned["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "build-1", "uid": "u-1"}
    ]
    assert manifest == before


def test_an_owner_from_a_template_is_replaced() -> None:
    manifest = {**other_manifest(), "metadata": {"name": "x", "ownerReferences": [{"uid": "z"}]}}
    owned = set_owner_reference(manifest, pod="build-1", uid="u-1")
    assert [owner["uid"] for owner in owned["metadata"]["ownerReferences"]] == ["u-1"]


def test_the_rest_stays_as_it_is() -> None:
    owned = set_owner_reference(other_manifest(), pod="p", uid="u")
    assert owned["data"] == {"a": "b"}
    assert owned["metadata"]["name"] == "x"
