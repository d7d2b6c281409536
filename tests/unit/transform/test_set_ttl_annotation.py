import pytest

from engine.transform.set_ttl_annotation import set_ttl_annotation
from tests.unit.builders import context, make_job, other_manifest, pod_manifest
from tests.unit.transform.support import apply


@pytest.mark.parametrize(
    "manifest", [pod_manifest(), other_manifest("Secret"), other_manifest("ConfigMap")]
)
def test_every_kind_gets_the_ttl_in_whole_seconds(manifest: dict[str, object]) -> None:
    made = apply(set_ttl_annotation, manifest, context(make_job(ttl="3h15m")))
    assert made["metadata"]["annotations"] == {"jobs.engine/ttl": "11700"}


def test_the_ttl_is_start_timeout_and_timeout_and_leeway_by_default() -> None:
    job = make_job(timeout="1h", startTimeout="10m")
    made = apply(set_ttl_annotation, pod_manifest(), context(job))
    assert made["metadata"]["annotations"]["jobs.engine/ttl"] == "4500"


def test_other_annotations_stay() -> None:
    manifest = {**other_manifest(), "metadata": {"name": "x", "annotations": {"a": "b"}}}
    made = apply(set_ttl_annotation, manifest, context(make_job(ttl=9000)))
    assert made["metadata"]["annotations"] == {"a": "b", "jobs.engine/ttl": "9000"}


def test_empty_annotations_of_a_template_are_no_obstacle() -> None:
    manifest = {**other_manifest(), "metadata": {"name": "x", "annotations": None}}
    made = apply(set_ttl_annotation, manifest, context(make_job(ttl=9000)))
    assert made["metadata"]["annotations"] == {"jobs.engine/ttl": "9000"}
