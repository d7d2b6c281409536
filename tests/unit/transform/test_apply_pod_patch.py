import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.errors import RenderError
from engine.transform import transform
from engine.transform.apply_pod_patch import apply_pod_patch
from engine.transform.check_job import job_faults
from tests.unit.builders import context, make_job, other_manifest, pod_manifest
from tests.unit.strategies import json_values

JOB = make_job(pullPolicy="Always")


def patched(patch: dict[str, Any], **spec: Any) -> dict[str, Any]:
    manifest = pod_manifest(**spec)
    before = copy.deepcopy(manifest)
    after = apply_pod_patch(manifest, context(make_job(podPatch=patch)))
    assert manifest == before
    return after


def test_the_patch_goes_on_top_of_the_rendered_pod() -> None:
    pod = patched({"spec": {"hostNetwork": True}, "metadata": {"labels": {"a": "b"}}})
    assert pod["spec"]["hostNetwork"] is True
    assert pod["spec"]["containers"] == [{"name": "main", "image": "alpine"}]
    assert pod["metadata"] == {"name": "x", "labels": {"a": "b"}}


def test_a_container_is_patched_by_its_name() -> None:
    patch = {"spec": {"containers": [{"name": "main", "tty": True}]}}
    assert patched(patch)["spec"]["containers"] == [
        {"name": "main", "image": "alpine", "tty": True}
    ]


def test_without_a_patch_nothing_changes() -> None:
    assert apply_pod_patch(pod_manifest(), context()) == pod_manifest()


def test_the_patch_is_for_the_pod_alone() -> None:
    known = context(make_job(podPatch={"metadata": {"labels": {"a": "c"}}}))
    assert apply_pod_patch(other_manifest(), known) == other_manifest()


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"spec": None}, "leaves no pod"),
        ({"$patch": "delete"}, "leaves no pod"),
        ({"$patch": "replace", "spec": {}}, "leaves no pod"),
        ({"$patch": "replace", "kind": "Pod", "spec": {"restartPolicy": "Never"}}, "leaves no pod"),
        ({"spec": {"$retainKeys": [], "containers": [{"name": "main"}]}}, "containers is set"),
        ({"spec": {"containers": [{"image": "x"}]}}, "an item of containers has no name"),
    ],
)
def test_a_patch_that_leaves_no_pod_is_refused_in_words(patch: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderError) as error:
        patched(patch)
    assert words in str(error.value)
    assert "spec.podPatch" in str(error.value)
    assert str(error.value).startswith("job.yaml:1:")


FIELDS = (
    "spec", "metadata", "labels", "annotations", "containers", "initContainers", "env", "name",
    "securityContext", "capabilities", "add", "schedulingGates", "restartPolicy", "kind", "$patch",
    "imagePullPolicy", "image", "namespace", "$deleteFromPrimitiveList/finalizers", "finalizers",
    "$setElementOrder/containers", "seccompProfile", "ports", "containerPort", "volumes",
)  # fmt: skip
WORDS = st.sampled_from(("main", "Never", "delete", "replace", "merge", "Pod", ""))
patches = st.recursive(
    json_values | WORDS,
    lambda inner: (
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4) | st.lists(inner, max_size=3)
    ),
    max_leaves=20,
)
pod_patches = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.dictionaries(st.sampled_from(FIELDS), patches, max_size=4) | patches,
        "metadata": st.dictionaries(st.sampled_from(FIELDS), patches, max_size=3) | patches,
        "$patch": WORDS,
        "kind": WORDS,
    },
)


@given(pod_patches)
def test_any_patch_either_fits_or_is_refused_with_a_place(patch: dict[str, Any]) -> None:
    job = replace(JOB, spec={**JOB.spec, "podPatch": patch})
    manifest = pod_manifest(initContainers=[{"name": "prepare"}])
    before = copy.deepcopy(manifest)
    try:
        pod = transform(manifest, context(job, policies={"main": "Always"}))
    except RenderError as error:
        refused_at = str(error.where)
    else:
        refused_at = ""
        assert pod["kind"] == "Pod"
        assert pod["metadata"]["labels"]["jobs.engine/job"] == "build"
        main = [c for c in pod["spec"].get("containers") or () if c["name"] == "main"]
        assert job_faults(pod) or (len(main) == 1 and pod["spec"]["restartPolicy"] == "Never")
    assert refused_at in ("", "job.yaml:1:1")
    assert manifest == before
