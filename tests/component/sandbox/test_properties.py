"""Laws that hold for any input: patches, quantities, field sets, apply, decoding."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kubeschema import shipped_types
from engine.kubeschema.strategic_merge import strategic_merge
from engine.sandbox import quantity
from engine.sandbox.fields.paths import flatten, from_fields_v1, to_fields_v1
from engine.sandbox.fields.server_side_apply import Applier, apply
from engine.sandbox.patch import json_patch, merge_patch
from engine.sandbox.schema.decode import decode

Obj = dict[str, Any]

POD = shipped_types().kind("v1", "Pod")
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
    assert strategic_merge(POD, pod, pod) == pod


@given(pods, pods)
def test_a_strategic_patch_contains_every_container_of_both(old: Obj, change: Obj) -> None:
    out = strategic_merge(POD, read(old), read(change))
    names = {c["name"] for pod in (old, change) for c in pod["spec"]["containers"]}
    assert {c["name"] for c in out["spec"].get("containers", ())} == names


@given(pods)
def test_a_field_set_survives_being_written_and_read(pod: Obj) -> None:
    paths = set(flatten(POD, read(pod), with_parents=True))
    assert from_fields_v1(json.loads(json.dumps(to_fields_v1(paths)))) == paths


def applier(name: str, *, force: bool = False) -> Applier:
    return Applier(name, "v1", "", force, "2024-01-01T00:00:00Z")


@given(pods)
def test_applying_twice_is_the_same_as_once(pod: Obj) -> None:
    pod = read(pod)
    once = apply(POD, {"metadata": {}}, pod, applier("one"))
    assert apply(POD, copy.deepcopy(once), pod, applier("one")) == once


@given(pods, pods)
def test_what_one_manager_applies_last_is_all_that_is_left(first: Obj, second: Obj) -> None:
    live = apply(POD, {"metadata": {}}, read(first), applier("one"))
    live = apply(POD, live, read(second), applier("one"))
    live["metadata"].pop("managedFields", None)
    got, want = flatten(POD, read(live)), flatten(POD, read(second))
    assert {p: v for p, v in got.items() if v != {}} == {p: v for p, v in want.items() if v != {}}


@given(pods, pods)
@settings(max_examples=200)
def test_force_gives_the_applier_every_field_that_it_names(first: Obj, second: Obj) -> None:
    live = apply(POD, {"metadata": {}}, read(first), applier("one"))
    live = apply(POD, live, read(second), applier("two", force=True))
    got = flatten(POD, live)
    for path, value in flatten(POD, read(second)).items():
        if value != {}:
            assert got[path] == value


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
