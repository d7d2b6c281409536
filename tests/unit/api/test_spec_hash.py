import hashlib
import json
from typing import Any

import pytest

from engine.api.effective import BUILT_IN
from engine.api.field_kinds import FieldKind, field_kind
from engine.api.model import RETRIED, Job
from engine.api.spec_hash import changed_fields
from tests.unit.builders import document, load, load_document, make_config, make_job

PLAIN = make_job().spec_hash


def spec_hash(data: dict[str, Any]) -> str:
    """The hash of the one job of a document."""
    (job,) = load_document(data).jobs
    return job.spec_hash


def test_the_hash_is_sha256_over_what_runs_as_the_user_wrote_it() -> None:
    own = document(env={"LEVEL": "debug"})
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
    ["defaults: {timeout: 7m}", "limits: {maxTimeout: 1m}", "pull: {patience: 1m}"],
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
        {"env": {"A": "1"}},
        {"env": {"A": ""}},
        {"securityContext": {"allowPrivilegeEscalation": True}},
        {"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}},
        {"serviceAccountName": "ci", "automountServiceAccountToken": False},
        {"podPatch": {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}},
        {"services": [{"name": "db", "image": "db:1"}]},
        {"secrets": {"T": {"fromEnv": "ENGINE_SECRET_A"}}},
        {"secrets": {"T": {"fromEnv": "ENGINE_SECRET_B"}}},
        {"secrets": {"T": {"value": "a"}}},
        {"secrets": {"T": {"fromSecret": {"name": "ci", "key": "a"}}}},
        {"registryCredentials": [{"fromSecret": {"name": "ci"}}]},
    ],
)
def test_what_the_user_changes_does_enter(change: dict[str, Any]) -> None:
    assert make_job(**change).spec_hash != PLAIN


@pytest.mark.parametrize(
    "written",
    [
        *({name: default} for name, default in BUILT_IN.items() if name != "ttlLeeway"),
        {"timeout": 3600},
        {"timeout": "60m"},
        {"rerun": ""},
        {"hold": False},
        {"retry": {"max": 0}},
        {"retry": {}},
        {"env": {}},
        {"args": []},
        {"files": {}},
        {"secrets": {}},
        {"services": []},
        {"resources": {}},
        {"resources": {"limits": {}}},
        {"podPatch": {}},
        {"automountServiceAccountToken": False},
        {"securityContext": {"allowPrivilegeEscalation": False}},
        {"podSecurityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
    ],
    ids=str,
)
def test_to_write_a_default_out_changes_neither_the_hash_nor_a_digest(
    written: dict[str, Any],
) -> None:
    plain, job = make_job(), make_job(**written)
    if "args" in written:
        plain = make_job(script=None, command=["make"])
        job = make_job(script=None, command=["make"], **written)
    assert (job.spec_hash, job.spec_fields) == (plain.spec_hash, plain.spec_fields)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"retry": {"max": 2}}, {"retry": {"max": 2, "on": sorted(RETRIED, reverse=True)}}),
        ({}, {"retry": {"on": ["Evicted"]}}),
        ({"pullPolicy": "Always"}, {"pullPolicy": ["Always"]}),
        ({"timeout": "90m"}, {"timeout": 5400}),
    ],
)
def test_two_ways_to_write_how_it_is_tried_are_no_change(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    one, other = (load_document(document(**fields)).jobs[0] for fields in (before, after))
    assert (one.spec_hash, one.spec_fields) == (other.spec_hash, other.spec_fields)


def test_a_default_of_a_service_that_is_written_out_changes_nothing() -> None:
    def with_service(**fields: Any) -> str:
        return make_job(services=[{"name": "db", "image": "db:1", **fields}]).spec_hash

    context = {"allowPrivilegeEscalation": False}
    assert with_service(env={}, args=[], securityContext=context) == with_service()
    assert with_service(args=["-v"]) != with_service()


@pytest.mark.parametrize(
    "change",
    [
        {"timeout": "2h"},
        {"startTimeout": "2m"},
        {"retry": {"max": 1}},
        {"pullPolicy": "Never"},
        {"pullPolicy": ["Always", "IfNotPresent"]},
        {"onChange": "Wait"},
    ],
    ids=str,
)
def test_how_it_is_tried_changes_a_digest_and_not_the_hash(change: dict[str, Any]) -> None:
    plain, job = make_job(), make_job(**change)
    assert job.spec_hash == plain.spec_hash
    changed = changed_fields(plain.spec_fields, job.spec_fields, FieldKind.TRIED)
    assert changed == tuple(f"spec.{name}" for name in change)
    assert changed_fields(plain.spec_fields, job.spec_fields) == ()


def test_a_containers_own_pull_policy_says_how_it_is_tried() -> None:
    def with_policy(**policy: str) -> Job:
        both = {"image": "a:1", **policy}
        services, first = [{"name": "db", **both}], [{"name": "fetch", **both}]
        return make_job(services=services, initContainers=first)

    one, other = with_policy(pullPolicy="Always"), with_policy()
    assert one.spec_hash == other.spec_hash
    assert changed_fields(one.spec_fields, other.spec_fields, FieldKind.TRIED) == (
        "spec.initContainers.pullPolicy",
        "spec.services.pullPolicy",
    )


@pytest.mark.parametrize(
    "change",
    [{"ttl": "2d"}, {"ttlAfterFinished": {"success": "1m"}}, {"hold": True}],
    ids=str,
)
def test_how_it_is_kept_changes_nothing_of_its_identity(change: dict[str, Any]) -> None:
    plain, job = make_job(), make_job(**change)
    assert (job.spec_hash, job.spec_fields) == (plain.spec_hash, plain.spec_fields)


def test_a_field_in_no_table_says_what_runs() -> None:
    assert field_kind(("spec", "aFieldOfTomorrow")) is FieldKind.RUNS
    assert field_kind(("spec", "retry", "max")) is FieldKind.TRIED
    assert field_kind(("metadata", "labels", "team")) is FieldKind.KEPT
    assert field_kind(("metadata", "name")) is FieldKind.RUNS


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
