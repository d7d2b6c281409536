import pytest

from engine.transform.set_names_and_labels import set_names_and_labels
from tests.unit.builders import context, make_job, other_manifest, pod_manifest
from tests.unit.transform.support import apply


@pytest.mark.parametrize(
    "manifest", [pod_manifest(), other_manifest("Secret"), other_manifest("ConfigMap")]
)
def test_every_object_of_an_attempt_has_one_name_and_the_engines_labels(
    manifest: dict[str, object],
) -> None:
    job = make_job()
    metadata = apply(set_names_and_labels, manifest, context(job, attempt=3))["metadata"]
    assert metadata["name"] == f"build-{job.spec_hash[:8]}-3"
    assert metadata["namespace"] == "ci"
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "engine",
        "jobs.engine/job": "build",
        "jobs.engine/run": job.spec_hash[:8],
        "jobs.engine/attempt": "3",
        "jobs.engine/source": "default",
    }


def test_the_longest_name_fits_a_pods_hostname() -> None:
    known = context(make_job("b" * 48), attempt=11)
    assert len(apply(set_names_and_labels, pod_manifest(), known)["metadata"]["name"]) <= 63


def test_a_template_cant_rename_or_relabel_what_the_engine_finds_its_objects_by() -> None:
    manifest = pod_manifest()
    manifest["metadata"] = {
        "generateName": "x-",
        "namespace": "kube-system",
        "labels": {"jobs.engine/job": "other", "team": "web"},
    }
    metadata = apply(set_names_and_labels, manifest, context())["metadata"]
    assert "generateName" not in metadata
    assert metadata["namespace"] == "ci"
    assert metadata["labels"]["jobs.engine/job"] == "build"
    assert metadata["labels"]["team"] == "web"


def test_without_a_namespace_the_context_decides() -> None:
    job = make_job(namespace="")
    metadata = apply(set_names_and_labels, pod_manifest(), context(job))["metadata"]
    assert "namespace" not in metadata


def test_annotations_stay_as_they_are() -> None:
    manifest = {**pod_manifest(), "metadata": {"annotations": {"a": "b"}, "labels": None}}
    metadata = apply(set_names_and_labels, manifest, context())["metadata"]
    assert metadata["annotations"] == {"a": "b"}
