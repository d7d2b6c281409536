"""Laws that hold for any input: patches, quantities, decoding."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.api.kubernetes_schema import SHIPPED
from engine.sandbox import quantity
from engine.sandbox.patches import json_patch, merge_patch
from engine.sandbox.schema.decode import decode
from engine.sandbox.schema.types import struct_of
from engine.transform.strategic_merge import strategic_merge

Obj = dict[str, Any]

POD = struct_of("v1", "Pod")
POD_TYPE = SHIPPED.kind("v1", "Pod")
words = st.sampled_from(["a", "b", "c", "d"])
texts = st.text(min_size=1, max_size=5)
leaves = st.none() | st.booleans() | st.integers(0, 9) | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": words, "image": texts},
        optional={
            "env": st.lists(
                st.fixed_dictionaries({"name": words, "value": texts}),
                max_size=3,
                unique_by=lambda item: item["name"],
            ),
            "command": st.lists(texts, min_size=1, max_size=2),
            "resources": st.fixed_dictionaries({"limits": st.dictionaries(words, st.just("1"))}),
        },
    ),
    max_size=3,
    unique_by=lambda item: item["name"],
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(words, texts, max_size=3)}
        ),
        "spec": st.fixed_dictionaries(
            {"containers": containers},
            optional={"nodeSelector": st.dictionaries(words, texts, min_size=1, max_size=2)},
        ),
    }
)


def read(pod: Obj) -> Obj:
    return decode(POD, pod)[0]


@given(values, values)
def test_a_merge_patch_leaves_no_null_that_it_brought(doc: Any, change: Any) -> None:
    out = merge_patch(copy.deepcopy(doc), change)
    if isinstance(change, dict):
        assert all(name not in out for name, value in change.items() if value is None)
    else:
        assert out == change


@given(values, values)
def test_a_merge_patch_twice_is_the_same_as_once(doc: Any, change: Any) -> None:
    once = merge_patch(copy.deepcopy(doc), change)
    assert merge_patch(copy.deepcopy(once), change) == once


@given(st.dictionaries(words, values, max_size=4), words, values)
def test_a_json_patch_adds_what_its_test_then_finds(doc: Obj, name: str, value: Any) -> None:
    steps = [
        {"op": "add", "path": f"/{name}", "value": value},
        {"op": "test", "path": f"/{name}", "value": value},
    ]
    out = json_patch(copy.deepcopy(doc), steps)
    assert out[name] == value
    assert {k: v for k, v in out.items() if k != name} == {
        k: v for k, v in doc.items() if k != name
    }


@given(pods)
def test_a_strategic_patch_with_the_object_itself_changes_nothing(pod: Obj) -> None:
    pod = read(pod)
    assert strategic_merge(SHIPPED, POD_TYPE, pod, pod) == pod


@given(pods, pods)
def test_a_strategic_patch_contains_every_container_of_both(old: Obj, change: Obj) -> None:
    out = strategic_merge(SHIPPED, POD_TYPE, read(old), read(change))
    names = {c["name"] for pod in (old, change) for c in pod["spec"]["containers"]}
    assert {c["name"] for c in out["spec"].get("containers", ())} == names


@given(pods)
def test_decoding_is_stable(pod: Obj) -> None:
    once = read(pod)
    again, unknown = decode(POD, copy.deepcopy(once))
    assert (again, unknown) == (once, [])


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_a_quantity_keeps_its_amount_when_made_canonical(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    written = quantity.canonical(text)
    assert quantity.parse(written) == quantity.parse(text)
    assert quantity.canonical(written) == written
