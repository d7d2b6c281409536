from engine.refs import JobKey, Ref, pod_name, record_name, ref_of


def test_references_print_as_people_write_them() -> None:
    assert str(JobKey("ci", "build")) == "ci/build"
    assert str(Ref("Pod", "ci", "build-1")) == "pod/ci/build-1"


def test_a_manifest_gives_its_reference() -> None:
    manifest = {"kind": "Secret", "metadata": {"name": "x", "namespace": "ci"}}
    assert ref_of(manifest) == Ref("Secret", "ci", "x")
    assert ref_of({"kind": "Secret", "metadata": {"name": "x"}}).namespace == ""


def test_names_of_a_jobs_objects_never_meet_its_records_name() -> None:
    assert pod_name("build", "3f9c2a1b", 1) == "build-3f9c2a1b-1"
    assert record_name("build") == "build.record"
