"""A hint names what would work, whichever namespace is meant and whoever says it."""

import json
import re

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

NOWHERE = "no-such-place"


def write_job(engine: Engine, namespace: str = "") -> None:
    metadata = {"name": "job", **({"namespace": namespace} if namespace else {})}
    spec = {"image": engine.image, "script": "true"}
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec"}
    engine.write("job.yaml", json.dumps({**head, "metadata": metadata, "spec": spec}))


@pytest.mark.parametrize("command", [("reconcile", "--once"), ("diff",)])
def test_a_namespace_that_the_spec_names_is_changed_there_and_not_with_n(
    engine: Engine, command: tuple[str, ...]
) -> None:
    write_job(engine, NOWHERE)
    said = engine.run(*command, str(engine.folder), "-n", engine.namespace, ends=2)
    note, error = said.stderr.splitlines()
    assert note == (
        f"note: -n {engine.namespace} is for specs that name no namespace; here each names its own"
    )
    assert error.endswith(
        f"there is no namespace {NOWHERE} in the cluster "
        f"(kubectl create namespace {NOWHERE}, or change metadata.namespace)"
    )


def test_a_namespace_of_the_folders_defaults_gives_way_to_n(engine: Engine) -> None:
    defaults = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\n"
    engine.write("defaults.yaml", f"{defaults}metadata: {{namespace: {NOWHERE}}}\n")
    write_job(engine)
    command = ("reconcile", "--once", str(engine.folder))
    said = engine.run(*command, ends=2)
    assert f"(kubectl create namespace {NOWHERE}, or choose another with -n)" in said.stderr
    assert "note:" not in engine.run(*command, "-n", engine.namespace, ends=0).stderr


def test_an_engine_that_stays_says_how_a_missing_namespace_is_made(engine: Engine) -> None:
    write_job(engine, NOWHERE)
    with EngineProcess(engine) as staying:
        said = staying.wait_for_line(f'namespaces "{NOWHERE}" not found')
    assert f"(kubectl create namespace {NOWHERE})" in said


def test_an_engine_that_stays_starts_the_job_once_its_namespace_is_there(
    engine: Engine, objects: Objects
) -> None:
    late = f"{engine.namespace}-late"
    write_job(engine, late)
    with EngineProcess(engine) as staying:
        staying.wait_for_line(f"(kubectl create namespace {late})")
        objects.api.create("namespaces", {"metadata": {"name": late}})
        try:
            staying.wait_for_line("job: Starting")
        finally:
            objects.api.delete("namespaces", late)


@pytest.mark.parametrize("command", ["cancel", "rerun", "logs", "describe", "status"])
def test_who_forgot_the_namespace_is_told_where_to_look(engine: Engine, command: str) -> None:
    write_job(engine, engine.namespace)
    engine.reconcile(ends=0)
    said = engine.run(command, f"{NOWHERE}/job", ends=2)
    assert said.stderr.splitlines()[-1] == (
        f"error: {NOWHERE}/job: there is no record of this job (engine status -A shows all jobs)"
    )
    assert engine.namespace in engine.run("status", "-A", ends=0).stdout


def test_the_hint_of_a_job_that_is_under_way_cancels_it_as_it_stands(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=300))
    engine.reconcile("--wait", "applied", ends=0)
    job = f"{engine.namespace}/long"
    refused = engine.run("rerun", job, ends=2)
    hint = re.search(r"\(engine (cancel \S+) first\)", refused.stderr)
    assert hint is not None, refused.stderr
    engine.run(*hint[1].split(), ends=0)
    assert "will run again" in engine.run("rerun", job, ends=0).stdout
