import pytest

from engine.transform.set_active_deadline import set_active_deadline
from tests.unit.builders import context, make_config, make_job, pod_manifest
from tests.unit.transform.support import apply


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("3h15m", 11700), ("1500ms", 2), ("1ms", 1), (60, 60)]
)
def test_the_timeout_in_whole_seconds_is_the_deadline_whatever_the_template_says(
    timeout: str | int, seconds: int
) -> None:
    for manifest in (pod_manifest(), pod_manifest(activeDeadlineSeconds=5)):
        pod = apply(set_active_deadline, manifest, context(make_job(timeout=timeout)))
        assert pod["spec"]["activeDeadlineSeconds"] == seconds


def test_without_the_feature_there_is_no_deadline() -> None:
    config = make_config("features: {activeDeadlineSeconds: false}")
    manifest = pod_manifest()
    assert apply(set_active_deadline, manifest, context(make_job(config=config))) == manifest
