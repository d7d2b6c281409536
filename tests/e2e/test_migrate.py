"""`engine migrate`: a job moves between files and objects, and nothing runs."""

from dataclasses import replace
from typing import Any

import pytest

from engine.sandbox import Fault, Sandbox
from engine.sandbox.faults import ServerError
from tests.support.api import Api
from tests.support.clusters import ClusterUnderTest, RealCluster
from tests.support.definitions import install_definitions
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects

JOB_SPECS = "jobs.engine/v1alpha1/jobspecs"
SPEC: dict[str, Any] = {"script": "exit 0"}


@pytest.fixture
def engine(engine: Engine, target: ClusterUnderTest) -> Engine:
    """Whose specs are files, without a source of their own."""
    if isinstance(target, RealCluster):
        install_definitions(Api.from_kubeconfig(target.kubeconfig).client)
    engine.environment.pop("ENGINE_SOURCE", None)
    return engine


@pytest.fixture
def applied(engine: Engine) -> Engine:
    """The same with objects."""
    return replace(engine, objects=True)


def migrate(engine: Engine, to: str, *more: str, ends: int = 0) -> CommandResult:
    return engine.run("migrate", "--to", to, str(engine.folder), *more, ends=ends)


def write(engine: Engine, *, names_namespace: bool, **spec: Any) -> None:
    """The file, with and without its namespace: two run hashes of one spec."""
    engine.spec("build", **spec)
    if not names_namespace:
        path = engine.folder / "build.yaml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f', "namespace": "{engine.namespace}"', ""), encoding="utf-8")


def uids(objects: Objects) -> set[str]:
    return {pod["metadata"]["uid"] for pod in objects.pods()}


@pytest.mark.parametrize("names_namespace", [True, False])
@pytest.mark.parametrize(("exits", "state"), [(0, "Succeeded"), (3, "Failed")])
def test_a_job_moves_there_and_back_and_never_runs(
    engine: Engine,
    applied: Engine,
    objects: Objects,
    target: ClusterUnderTest,
    names_namespace: bool,
    exits: int,
    state: str,
) -> None:
    place, spec = ("-n", engine.namespace), {"script": target.script("build", ends=exits)}
    write(engine, names_namespace=names_namespace, **spec)
    engine.reconcile(*place, ends=exits and 1)
    before = uids(objects)
    applied.spec("build", **spec)
    applied.reconcile(ends=2)
    assert "would be moved" in migrate(engine, "objects", *place, "--dry-run").stdout
    assert "moved" in migrate(engine, "objects", *place).stdout
    over = applied.reconcile(ends=exits and 1).job("build")
    assert (over["state"], over["changed"]) == (state, False)
    refused = engine.reconcile(*place, ends=2)
    assert "belongs to source 'objects' of objects" in refused.stderr
    assert migrate(engine, "objects", *place).stdout.startswith(f"{engine.namespace}/build: has")
    migrate(engine, "files", *place)
    over = engine.reconcile(*place, ends=exits and 1).job("build")
    assert (over["state"], over["changed"]) == (state, False)
    applied.reconcile(ends=2)
    assert uids(objects) == before


def test_a_job_whose_file_has_changed_runs_as_a_changed_one(
    engine: Engine, applied: Engine, objects: Objects
) -> None:
    engine.spec("build", **SPEC)
    engine.reconcile(ends=0)
    applied.spec("build", **SPEC, env={"NEW": "1"})
    migrate(engine, "objects")
    assert applied.reconcile(ends=0).job("build")["changed"] is True
    assert len(objects.pods()) == 2


def test_what_is_not_over_or_has_no_object_stays_where_it_is(
    engine: Engine, applied: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=600))
    engine.reconcile("--wait", "applied", ends=0)
    assert "the job is" in migrate(engine, "objects", ends=2).stderr
    engine.run("cancel", "build", "-n", engine.namespace, ends=0)
    assert "there is no JobSpec object" in migrate(engine, "objects", ends=2).stderr


@pytest.mark.only("sandbox")
@pytest.mark.parametrize(
    ("to", "step", "keeps"),
    [
        ("objects", ("update", "jobspecs/status"), True),
        ("objects", ("delete", "configmaps"), True),
        ("objects", ("list", "pods"), False),
        ("files", ("create", "configmaps"), True),
        ("files", ("update", "jobspecs/status"), False),
        ("files", ("list", "pods"), False),
    ],
)
def test_whatever_step_it_ends_at_the_job_has_one_owner_and_the_next_call_finishes_it(
    engine: Engine,
    applied: Engine,
    objects: Objects,
    sandbox: Sandbox,
    to: str,
    step: tuple[str, str],
    keeps: bool,
) -> None:
    first, then = (engine, applied) if to == "objects" else (applied, engine)
    first.spec("build", **SPEC)
    first.reconcile(ends=0)
    then.spec("build", **SPEC)
    engine.spec("build", **SPEC)
    verb, resource = step
    fault = sandbox.faults.add(Fault(ServerError(500), verb=verb, resource=resource, times=None))
    migrate(engine, to, ends=6)
    sandbox.faults.remove(fault)
    before = uids(objects)
    owner, other = (first, then) if keeps else (then, first)
    for edited in (engine, applied):
        edited.spec("build", **SPEC, env={"NEW": "1"})
    other.reconcile(ends=2)
    assert uids(objects) == before
    for edited in (engine, applied):
        edited.spec("build", **SPEC)
    assert owner.reconcile(ends=0).job("build")["state"] == "Succeeded"
    migrate(engine, to)
    assert then.reconcile(ends=0).job("build")["state"] == "Succeeded"
    first.reconcile(ends=2)
    assert uids(objects) == before
