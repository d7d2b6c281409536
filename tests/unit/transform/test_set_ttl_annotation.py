from typing import Any

import pytest

from engine.transform.set_ttl_annotation import set_ttl_annotation
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
        assert made["metadata"]["annotations"] == {**(before or {}), "jobs.engine/ttl": "4500"}
