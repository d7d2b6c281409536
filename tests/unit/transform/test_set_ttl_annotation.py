from typing import Any

import pytest

from engine.transform.set_ttl_annotation import set_ttl_annotation
from engine.wellknown import LAST_APPLIED
from tests.unit.builders import context, make_job, other_manifest, pod_manifest
from tests.unit.transform.support import apply

DEFAULT = {"timeout": "1h", "startTimeout": "10m"}


@pytest.mark.parametrize("spec", [{"ttl": "75m"}, DEFAULT], ids=["given", "by default"])
@pytest.mark.parametrize("before", [None, {}, {"a": "b"}])
def test_every_kind_gets_the_ttl_in_whole_seconds_beside_other_annotations(
    spec: dict[str, Any], before: dict[str, str] | None
) -> None:
    for manifest in (pod_manifest(), other_manifest("Secret"), other_manifest("ConfigMap")):
        given = {**manifest, "metadata": {"name": "x", "annotations": before}}
        made = apply(set_ttl_annotation, given, context(make_job(**spec)))
        made["metadata"]["annotations"].pop(LAST_APPLIED, None)
        assert made["metadata"]["annotations"] == {**(before or {}), "jobs.engine/ttl": "4500"}


def test_a_ttl_without_an_end_is_written_as_the_rule_of_pruning_reads_it() -> None:
    made = apply(set_ttl_annotation, pod_manifest(), context(make_job(ttl="forever")))
    assert made["metadata"]["annotations"]["jobs.engine/ttl"] == "forever"


@pytest.mark.parametrize("ttl", ["75m", "forever"])
def test_a_hold_is_written_beside_it_on_every_kind(ttl: str) -> None:
    for manifest in (pod_manifest(), other_manifest("Secret"), other_manifest("ConfigMap")):
        made = apply(set_ttl_annotation, manifest, context(make_job(ttl=ttl, hold=True)))
        assert made["metadata"]["annotations"]["jobs.engine/hold"] == "true"
        made = apply(set_ttl_annotation, manifest, context(make_job(ttl=ttl, hold=False)))
        assert "jobs.engine/hold" not in made["metadata"]["annotations"]


def test_a_pod_is_marked_with_what_was_written_and_its_dependents_are_not() -> None:
    def mark(**spec: Any) -> str:
        made = apply(set_ttl_annotation, pod_manifest(), context(make_job(**spec)))
        return str(made["metadata"]["annotations"][LAST_APPLIED])

    assert [name.partition("=")[0] for name in mark(hold=True).split()] == [
        "annotations/jobs.engine/ttl",
        "annotations/jobs.engine/hold",
    ]
    assert len({mark(), mark(ttl="2d"), mark(hold=True)}) == 3
    assert mark() == mark(script="make other\n")
    made = apply(set_ttl_annotation, other_manifest("Secret"), context(make_job()))
    assert LAST_APPLIED not in made["metadata"]["annotations"]
