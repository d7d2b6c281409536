import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.kubernetes_schema import CORE, SHIPPED, KubernetesSchema
from engine.api.pod_fields import merge_key_of
from engine.errors import RenderError
from engine.transform.strategic_merge import strategic_merge

DEFINITIONS = SHIPPED.definitions["types"]
ITSELF = {"$ref": "#/definitions/every"}
EVERY: dict[str, Any] = {
    "properties": {
        **DEFINITIONS["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"],
        **DEFINITIONS[f"{CORE}.Container"]["properties"],
        **DEFINITIONS[f"{CORE}.PodSpec"]["properties"],
        "a": ITSELF,
        "d": ITSELF,
    }
}
"""Has the lists of a pod, of its containers and of its metadata, and itself as `a` and `d`."""
TYPES_OF_TESTS = KubernetesSchema(lambda _: {"definitions": {**DEFINITIONS, "every": EVERY}})
BY_NAME = [field for field, kind in EVERY["properties"].items() if merge_key_of(kind) == "name"]

A, B = {"name": "a", "value": "1"}, {"name": "b", "value": "2"}


def merge(current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge(TYPES_OF_TESTS, EVERY, current, patch)


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field is added"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a field is replaced"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null removes a field"),
        pytest.param({}, {"a": None}, {}, id="null of nothing is nothing"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null in a new mapping"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="deep merge"),
        pytest.param({"a": 3}, {"a": {"c": 2}}, {"a": {"c": 2}}, id="a mapping replaces a value"),
        pytest.param({"a": {"c": 2}}, {"a": 3}, {"a": 3}, id="a value replaces a mapping"),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete"),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "merge", "c": 2}}, {"a": {"b": 1, "c": 2}}, id="merge"
        ),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="a plain list"),
        pytest.param(
            {"env": [A]}, {"env": [B]}, {"env": [A, B]}, id="a new item joins a list with a key"
        ),
        pytest.param(
            {"env": [A, B]},
            {"env": [{"name": "a", "value": "3"}]},
            {"env": [{"name": "a", "value": "3"}, B]},
            id="an item is merged in its place",
        ),
        pytest.param(
            {"env": [A]},
            {"env": [{"name": "a", "value": None, "valueFrom": {"x": 1}}]},
            {"env": [{"name": "a", "valueFrom": {"x": 1}}]},
            id="null in an item",
        ),
        pytest.param(
            {"env": [A, B]}, {"env": [{"name": "a", "$patch": "delete"}]}, {"env": [B]},
            id="an item is deleted",
        ),
        pytest.param(
            {"env": [A]}, {"env": [{"name": "z", "$patch": "delete"}]}, {"env": [A]},
            id="an item that is not there is deleted",
        ),
        pytest.param(
            {"env": [A]}, {"env": [{"$patch": "replace"}, B]}, {"env": [B]}, id="a list is replaced"
        ),
        pytest.param(
            {"env": [A]},
            {"env": [{"name": "a", "$patch": "replace"}, B]},
            {"env": [B]},
            id="a list is replaced whichever item says so, as Kubernetes does it",
        ),
        pytest.param(
            {"volumeMounts": [{"mountPath": "/a", "name": "v"}]},
            {"volumeMounts": [{"mountPath": "/a", "readOnly": True}]},
            {"volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": True}]},
            id="mounts merge by their path",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 81}]},
            {"ports": [{"containerPort": 80}, {"containerPort": 81}]},
            id="ports merge by their number",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations have no merge key",
        ),
        pytest.param(
            {"finalizers": ["a"]}, {"finalizers": ["a", "b"]}, {"finalizers": ["a", "b"]},
            id="finalizers are a set",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="delete from a primitive list",
        ),
        pytest.param(
            {"env": [A]}, {"$setElementOrder/env": [{"name": "a"}], "env": [B]}, {"env": [A, B]},
            id="an order is no field",
        ),
        pytest.param(
            {"env": [A]}, {"$setElementOrder/env": [{"name": "b"}, {"name": "a"}], "env": [B]},
            {"env": [B, A]},
            id="items are put in the order of the patch",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]}, {"$setElementOrder/finalizers": ["b"]},
            {"finalizers": ["b", "a"]},
            id="plain values are put in the order of the patch",
        ),
        pytest.param(
            {"ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53}]},
            {"ports": [{"containerPort": 53, "name": "dns"}]},
            {"ports": [{"containerPort": 53, "protocol": "TCP", "name": "dns"},
                       {"containerPort": 53}]},
            id="of two items with one key the first is merged, and neither is lost",
        ),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c", "e"], "e": 3}},
            {"a": {"c": 2, "e": 3}},
            id="only retained keys stay",
        ),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c"], "b": None}},
            {"a": {"c": 2}},
            id="what is removed need not be retained",
        ),
    ],
)  # fmt: skip
def test_the_rules_of_merge(
    current: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy((current, patch))
    assert merge(current, patch) == expected
    assert (current, patch) == before


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "remove"},
        {"env": [{"value": "1"}]},
        {"env": [{"name": ["a"]}]},
        {"$deleteFromPrimitiveList/finalizers": 3},
        {"$deleteFromPrimitiveList/env": "a"},
        {"$retainKeys": "env"},
        {"$retainKeys": ["finalizers"], "env": [A]},
        {"$setElementOrder/env": "a"},
    ],
)
def test_a_patch_that_cant_be_applied_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(RenderError):
        merge({"env": [A], "finalizers": ["a"]}, patch)


names = st.sampled_from(["a", "b", "c"])
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
items = st.dictionaries(st.sampled_from(["x", "y"]), leaves.filter(lambda v: v is not None))
keyed = st.dictionaries(names, items).map(lambda d: [{"name": k, **v} for k, v in d.items()])
manifests = st.recursive(
    st.dictionaries(names, leaves.filter(lambda v: v is not None), max_size=3),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"a": inner, "d": inner, "env": keyed, "args": st.lists(names, max_size=2)}
    ),
    max_leaves=6,
)


@given(manifests)
def test_an_empty_patch_changes_nothing(current: dict[str, Any]) -> None:
    assert merge(current, {}) == current


@given(manifests)
def test_a_manifest_patched_with_itself_stays_itself(current: dict[str, Any]) -> None:
    assert merge(current, current) == current


@given(manifests, manifests)
def test_a_patch_applied_twice_is_applied_once(
    current: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = merge(current, patch)
    assert merge(once, patch) == once


@given(manifests, manifests)
def test_neither_side_is_changed(current: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((current, patch))
    merge(current, patch)
    assert (current, patch) == before


@given(manifests, manifests)
def test_what_the_patch_says_of_plain_fields_is_so_afterwards(
    current: dict[str, Any], patch: dict[str, Any]
) -> None:
    merged = merge(current, patch)
    for field, value in patch.items():
        if not isinstance(value, dict | list):
            assert merged[field] == value


@given(keyed, keyed)
def test_a_list_with_a_key_never_holds_one_key_twice(
    current: list[dict[str, Any]], patch: list[dict[str, Any]]
) -> None:
    for field in BY_NAME:
        merged = merge({field: current}, {field: patch})[field]
        found = [item["name"] for item in merged]
        assert len(found) == len(set(found))
        assert set(found) == {item["name"] for item in (*current, *patch)}
