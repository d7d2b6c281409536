from typing import Any

import pytest

from engine.api.model import RETRIED, Config, Job, Limits, LoadedJobs
from engine.api.parse import SpecText
from engine.specdir.load import with_namespace
from tests.support.yaml_text import to_yaml_value
from tests.unit.builders import API_VERSION, document, lines_of, load_texts, make_config, make_job

NO_CONFIG = Config()
JOB: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "JobSpec", "metadata": {"name": "build"}}


def defaults(**metadata: Any) -> Any:
    """JobDefaults with this spec."""
    return {"apiVersion": API_VERSION, "kind": "JobDefaults", "spec": metadata}


def load_tree(
    files: dict[str, dict[str, Any] | str], config: Config = NO_CONFIG, namespace: str = ""
) -> LoadedJobs:
    """Jobs of these files, by their path below /specs."""
    texts = []
    for path, content in files.items():
        text = content if isinstance(content, str) else to_yaml_value(content)
        folder = "/".join(["/specs", *path.split("/")[:-1]])
        texts.append(SpecText(path, folder, text.encode()))
    return load_texts(texts, config, namespace)


def only(loaded: LoadedJobs) -> Job:
    assert lines_of(loaded) == []
    (job,) = loaded.jobs
    return job


def test_the_jobs_own_value_wins_over_its_folders_and_the_engines() -> None:
    config = make_config("defaults: {timeout: 3m, startTimeout: 3m, image: three}")
    loaded = load_tree(
        {
            "job.yaml": {**JOB, "spec": {"timeout": "1m"}},
            "defaults.yaml": defaults(timeout="2m", startTimeout="2m"),
        },
        config,
    )
    job = only(loaded)
    assert (job.timeout, job.start_timeout, job.spec["image"]) == (60, 120, "three")


def test_what_nobody_says_is_built_in() -> None:
    job = make_job()
    assert (job.timeout, job.start_timeout, job.ttl) == (3600, 600, 3600 + 600 + 300)
    assert job.spec["template"] == "job"
    assert job.on_change == "Replace"
    assert (job.retry.max, job.retry.on) == (0, RETRIED)


def test_the_nearer_folder_wins() -> None:
    loaded = load_tree(
        {
            "defaults.yaml": defaults(image="far", env={"A": "far", "B": "far"}),
            "web/defaults.yaml": defaults(env={"A": "near"}),
            "web/deep/job.yaml": {**JOB, "spec": {"env": {"C": "own"}}},
        }
    )
    job = only(loaded)
    assert job.spec["image"] == "far"
    assert job.spec["env"] == {"A": "near", "B": "far", "C": "own"}


def test_defaults_of_a_folder_beside_have_no_effect() -> None:
    loaded = load_tree({"a/defaults.yaml": defaults(image="x"), "b/job.yaml": {**JOB, "spec": {}}})
    assert lines_of(loaded) == [
        "b/job.yaml:1:98: spec.image is missing (set it here or in a JobDefaults)"
    ]


@pytest.mark.parametrize("own", [{"script": "own"}, {"command": ["own"]}, {"args": ["own"]}])
def test_an_entry_point_of_ones_own_replaces_the_folders_whole(own: dict[str, Any]) -> None:
    loaded = load_tree(
        {
            "d.yaml": defaults(image="x", command=["theirs"], args=["theirs"]),
            "job.yaml": {**JOB, "spec": own},
        }
    )
    spec = only(loaded).spec
    assert {key: spec[key] for key in ("script", "command", "args") if key in spec} == own


def test_lists_are_replaced_whole() -> None:
    loaded = load_tree(
        {
            "d.yaml": defaults(image="x", pullPolicy=["Always", "Never"]),
            "job.yaml": {**JOB, "spec": {"pullPolicy": ["IfNotPresent"]}},
        }
    )
    assert only(loaded).policies == {"main": ("IfNotPresent",)}


CONTAINERS = {
    "services": [{"name": "db", "image": "db"}],
    "initContainers": [
        {"name": "prepare", "image": "x"},
        {"name": "own", "image": "x", "pullPolicy": "Never"},
    ],
}


@pytest.mark.parametrize("level", ["job", "folder", "operator"])
def test_a_pull_policy_means_every_container_without_one_of_its_own(level: str) -> None:
    wanted = {"pullPolicy": ["Always", "IfNotPresent"]}
    folder, own = (wanted if level == name else {} for name in ("folder", "job"))
    config = make_config("defaults: {pullPolicy: [Always, IfNotPresent]}")
    loaded = load_tree(
        {
            "d.yaml": defaults(image="x", **folder),
            "job.yaml": {**JOB, "spec": {**CONTAINERS, **own}},
        },
        config if level == "operator" else NO_CONFIG,
    )
    job = only(loaded)
    inherited = dict.fromkeys(("db", "prepare", "main"), ("Always", "IfNotPresent"))
    assert job.policies == {**inherited, "own": ("Never",)}


def test_a_secret_of_ones_own_replaces_the_folders_source() -> None:
    loaded = load_tree(
        {
            "d.yaml": defaults(image="x", secrets={"T": {"fromEnv": "THEIRS"}}),
            "job.yaml": {**JOB, "spec": {"secrets": {"T": {"fromFile": "own"}}}},
        }
    )
    (secret,) = only(loaded).secrets
    assert (secret.source, secret.text) == ("fromFile", "own")


def test_nor_does_it_mix_with_a_secret_that_the_folder_refers_to() -> None:
    theirs = {"T": {"fromSecret": {"name": "theirs", "key": "k"}}, "U": {"value": "x"}}
    own = {"T": {"fromEnv": "ENGINE_SECRET_T"}, "U": {"fromSecret": {"name": "own", "key": "k"}}}
    job = only(
        load_tree(
            {
                "d.yaml": defaults(image="x", secrets=theirs),
                "job.yaml": {**JOB, "spec": {"secrets": own}},
            }
        )
    )
    assert [secret.variable for secret in job.secrets] == ["T"]
    assert job.secret_keys == {"U": {"name": "own", "key": "k"}}


def test_labels_and_annotations_are_merged() -> None:
    theirs = defaults(image="x")
    theirs["metadata"] = {"labels": {"team": "web", "tier": "ci"}, "annotations": {"a": "b"}}
    own = {**JOB, "metadata": {"name": "build", "labels": {"team": "own"}}, "spec": {}}
    job = only(load_tree({"d.yaml": theirs, "job.yaml": own}))
    assert job.labels == {"team": "own", "tier": "ci"}
    assert job.annotations == {"a": "b"}


def test_a_value_from_the_defaults_is_told_at_its_own_place() -> None:
    written = (
        "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec:\n  image: x\n  timeout: 0\n"
    )
    loaded = load_tree({"d.yaml": written, "job.yaml": {**JOB, "spec": {}}})
    (line,) = lines_of(loaded)
    assert line.startswith("d.yaml:5:12: spec.timeout is 0")


def test_a_mistake_in_the_defaults_is_told_once_for_all_jobs() -> None:
    written = (
        "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec:\n  image: x\n  timeout: 0\n"
    )
    jobs = {f"{n}.yaml": {**JOB, "metadata": {"name": f"job-{n}"}, "spec": {}} for n in range(3)}
    assert len(lines_of(load_tree({"d.yaml": written, **jobs}))) == 1


def test_unknown_fields_of_defaults_are_told() -> None:
    loaded = load_tree({"d.yaml": defaults(imgae="x"), "job.yaml": document()})
    (line,) = lines_of(loaded)
    assert 'unknown field "spec.imgae" (did you mean image?)' in line


def test_two_defaults_in_one_folder_are_told_with_both_places() -> None:
    loaded = load_tree({"a.yaml": defaults(), "b.yaml": defaults(), "job.yaml": document()})
    assert lines_of(loaded) == [
        "b.yaml:1:1: a second JobDefaults in one folder (the first is at a.yaml:1:1; merge them)"
    ]


def test_defaults_may_stand_in_the_file_of_the_job() -> None:
    text = f"{to_yaml_value(defaults(image='x'))}\n---\n{to_yaml_value({**JOB, 'spec': {}})}\n"
    assert only(load_tree({"job.yaml": text})).spec["image"] == "x"


def test_the_order_of_the_files_does_not_matter() -> None:
    files: dict[str, dict[str, Any] | str] = {
        "b/job.yaml": document("b"),
        "d.yaml": defaults(timeout="2m"),
        "a/job.yaml": document("a", imgae="x"),
        "c.yaml": document("c"),
    }
    one = load_tree(files)
    other = load_tree(dict(reversed(files.items())))
    assert one == other
    assert [job.name for job in one.jobs] == ["b", "c"]


@pytest.mark.parametrize(
    ("own", "flag", "folder", "namespace"),
    [
        ("own", "flag", "folder", "own"),
        (None, "flag", "folder", "flag"),
        (None, "", "folder", "folder"),
        (None, "", None, ""),
    ],
)
def test_the_namespace_comes_from_the_nearest_who_says_one(
    own: str | None, flag: str, folder: str | None, namespace: str
) -> None:
    spec = document()
    if own:
        spec["metadata"]["namespace"] = own
    theirs = defaults()
    if folder:
        theirs["metadata"] = {"namespace": folder}
    job = only(load_tree({"d.yaml": theirs, "job.yaml": spec}, namespace=flag))
    assert job.namespace == namespace
    (there,) = with_namespace([job], "context", Limits())
    assert there.namespace == (namespace or "context")


def test_the_deadline_feature_can_be_switched_off() -> None:
    config = make_config("features: {activeDeadlineSeconds: false}")
    job = make_job(config=config, timeout="1h")
    assert (job.timeout, job.features.active_deadline_seconds) == (3600, False)
