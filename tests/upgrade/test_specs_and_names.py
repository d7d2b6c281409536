"""Spec hashes, names, labels and annotations are what 0.1 made them: by them a run is known."""

from pathlib import Path
from typing import Any

from tests.upgrade.scenes import NAMESPACES, play_texts
from tests.upgrade.stage import Stage, stage
from tests.upgrade.stored import Object, Stored, by_job, is_record

ALL = Stored.of(
    "v0_1", "finished", "finished_before_gates", "texts", "under_way", "under_way_before_gates"
)
TEXTS = Stored.of("v0_1", "texts")
OWN = ("jobs.engine/", "app.kubernetes.io/")
WRITTEN_LATER = "jobs.engine/expires-at"
Identity = tuple[str, str, str]


def test_each_spec_has_the_hash_that_it_had_and_its_objects_are_the_same_by_name(
    tmp_path: Path,
) -> None:
    with stage(tmp_path, namespaces=NAMESPACES) as acted:
        play_texts(acted)
        found = by_job(acted.once().result)
        now = {_identity(item): _marks(item) for item in _engines_own(acted)}
    assert {job: entry["specHash"] for job, entry in found.items()} == {
        job: entry["specHash"] for job, entry in TEXTS.once.items()
    }
    assert now == {_identity(item): _marks(item) for item in TEXTS.objects()}


def test_what_is_rendered_has_the_names_labels_and_annotations_that_0_1_gave(
    tmp_path: Path,
) -> None:
    with stage(tmp_path) as acted:
        ALL.restore(acted, pods=False)
        acted.engine.environment.clear()
        run = acted.engine.run("render", str(acted.engine.folder), "-o", "json")
    assert run.code == 0, run.stderr
    rendered = {_identity_of_run(item): _marks(item) for item in run.result["items"]}
    runs = {key[:2] for key in rendered}
    compared = 0
    for item in ALL.objects():
        key = _identity_of_run(item)
        if is_record(item) or key[:2] not in runs:
            continue
        assert _marks(_as_first_attempt(item)) == rendered[key], key
        compared += 1
    assert compared > 60


def _engines_own(acted: Stage) -> list[Object]:
    found: list[Object] = [
        item for kind in ("pods", "configmaps", "secrets") for item in acted.sandbox.objects(kind)
    ]
    return [item for item in found if "jobs.engine/job" in item["metadata"].get("labels", {})]


def _identity(item: Object) -> Identity:
    metadata = item["metadata"]
    return item["kind"], metadata["namespace"], metadata["name"]


def _identity_of_run(item: Object) -> Identity:
    """Job, run and kind: what attempts of one run share."""
    labels = item["metadata"]["labels"]
    return labels["jobs.engine/job"], labels.get("jobs.engine/run", ""), item["kind"]


def _marks(item: Object) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Name, labels, and the engine's own annotations."""
    metadata = item["metadata"]
    annotations = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if key.startswith(OWN) and key != WRITTEN_LATER
    }
    return metadata["name"], metadata["labels"], annotations


def _as_first_attempt(item: Object) -> Object:
    metadata = item["metadata"]
    stem, _, _ = metadata["name"].rpartition("-")
    labels = {**metadata["labels"], "jobs.engine/attempt": "1"}
    return {**item, "metadata": {**metadata, "name": f"{stem}-1", "labels": labels}}
