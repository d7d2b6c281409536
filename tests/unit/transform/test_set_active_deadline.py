from engine.transform.set_active_deadline import set_active_deadline
from tests.unit.builders import context, make_config, make_job, other_manifest, pod_manifest
from tests.unit.transform.support import apply


def test_the_timeout_becomes_the_deadline_of_the_pod() -> None:
    pod = apply(set_active_deadline, pod_manifest(), context(make_job(timeout="3h15m")))
    assert pod["spec"]["activeDeadlineSeconds"] == 11700


def test_part_of_a_second_is_rounded_up() -> None:
    job = make_job(timeout="1500ms")
    pod = apply(set_active_deadline, pod_manifest(), context(job))
    assert pod["spec"]["activeDeadlineSeconds"] == 2


def test_the_deadline_is_never_below_one_second() -> None:
    pod = apply(set_active_deadline, pod_manifest(), context(make_job(timeout="1ms")))
    assert pod["spec"]["activeDeadlineSeconds"] == 1


def test_a_deadline_in_the_template_gives_way_to_the_timeout() -> None:
    manifest = pod_manifest(activeDeadlineSeconds=5)
    pod = apply(set_active_deadline, manifest, context(make_job(timeout=60)))
    assert pod["spec"]["activeDeadlineSeconds"] == 60


def test_without_the_feature_there_is_no_deadline() -> None:
    config = make_config("features: {activeDeadlineSeconds: false}")
    manifest = pod_manifest()
    assert apply(set_active_deadline, manifest, context(make_job(config=config))) == manifest


def test_other_kinds_get_no_deadline() -> None:
    assert apply(set_active_deadline, other_manifest(), context()) == other_manifest()
