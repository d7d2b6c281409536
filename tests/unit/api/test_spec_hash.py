import hashlib
import json
from typing import Any

import pytest

from tests.unit.builders import document, load, load_document, make_config, make_job

PLAIN = make_job().spec_hash


def spec_hash(data: dict[str, Any]) -> str:
    """The hash of the one job of a document."""
    (job,) = load_document(data).jobs
    return job.spec_hash


def test_the_hash_is_sha256_over_the_users_own_document() -> None:
    own = document(timeout="1h")
    identity = {"name": "build", "namespace": None, "spec": own["spec"]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert spec_hash(own) == hashlib.sha256(text.encode()).hexdigest()


def test_the_way_it_is_written_does_not_enter() -> None:
    block = """\
# a comment
kind: JobSpec
apiVersion: jobs.engine/v1alpha1

spec:
  script: |
    make test
  image: 'registry.example/alpine:3.20'
metadata: {name: build}
"""
    (job,) = load(block).jobs
    assert job.spec_hash == PLAIN


@pytest.mark.parametrize(
    "config",
    ["defaults: {timeout: 7m}", "limits: {maxTimeout: 1m}", "pull: {grace: 1m}"],
)
def test_the_operators_settings_do_not_enter(config: str) -> None:
    assert make_job(config=make_config(config)).spec_hash == PLAIN


def test_the_namespace_of_the_command_line_does_not_enter() -> None:
    assert make_job(namespace="other").spec_hash == PLAIN


def test_labels_and_annotations_do_not_enter() -> None:
    own = document()
    own["metadata"] |= {"labels": {"team": "web"}, "annotations": {"a": "b"}}
    assert spec_hash(own) == PLAIN


@pytest.mark.parametrize(
    "change",
    [
        {"rerun": "1"},
        {"rerun": "2"},
        {"script": "make other\n"},
        {"script": "make test"},
        {"image": "registry.example/alpine:3.21"},
        {"timeout": "1h"},
        {"env": {}},
        {"secrets": {"T": {"fromEnv": "ENGINE_SECRET_A"}}},
        {"secrets": {"T": {"fromEnv": "ENGINE_SECRET_B"}}},
        {"secrets": {"T": {"value": "a"}}},
        {"secrets": {"T": {"fromSecret": {"name": "ci", "key": "a"}}}},
        {"registryCredentials": [{"fromSecret": {"name": "ci"}}]},
    ],
)
def test_what_the_user_changes_does_enter(change: dict[str, Any]) -> None:
    assert make_job(**change).spec_hash != PLAIN


def test_all_of_these_are_different_runs() -> None:
    hashes = [
        make_job().spec_hash,
        make_job("other").spec_hash,
        make_job(rerun="1").spec_hash,
        make_job(rerun="2").spec_hash,
    ]
    assert len(set(hashes)) == 4


def test_a_namespace_in_the_file_enters() -> None:
    own = document()
    own["metadata"]["namespace"] = "ci"
    assert spec_hash(own) != PLAIN


def test_a_rotated_secret_is_no_new_run() -> None:
    def with_value(value: str) -> str:
        login = {"registry": "r", "username": "u", "password": {"value": value}}
        secrets = {"T": {"value": value}}
        return make_job(secrets=secrets, registryCredentials=[login]).spec_hash

    assert with_value("old") == with_value("new")


def test_the_short_hash_names_the_run() -> None:
    job = make_job()
    assert job.run == job.spec_hash[:8]
