import copy

from engine.transform.set_owner_reference import set_owner_reference
from tests.unit.builders import other_manifest


def test_the_pod_becomes_the_only_owner_and_the_rest_stays_as_it_is() -> None:
    manifest = {**other_manifest(), "metadata": {"name": "x", "ownerReferences": [{"uid": "z"}]}}
    before = copy.deepcopy(manifest)
    owned = set_owner_reference(manifest, pod="build-1", uid="u-1")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "build-1", "uid": "u-1"}
    assert owned == {**before, "metadata": {"name": "x", "ownerReferences": [owner]}}
    assert manifest == before
