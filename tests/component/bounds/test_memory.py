"""No author's file and no tenant's object takes more memory than the engine's pod has.

Every command runs in a process that can't have more than 512 MiB (tests/support/bounded.py).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.api import Api
from tests.support.bounded import COMMAND, LIMIT_MIB, PEAK, peak_mib
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, wait_for_state

MEGABYTE = "0123456789abcde\n" * 62_500
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(seed=25) as made:
        yield made


@pytest.fixture
def engine(sandbox: Sandbox, tmp_path: Path) -> Engine:
    made = engine_on(sandbox, tmp_path)
    made.command, made.environment["ENGINE_SOURCE"] = COMMAND, NAMESPACE
    made.environment |= {"PYTHONPATH": str(ROOT), PEAK: str(tmp_path / "peak")}
    made.spec("good", script="true")
    return made


def one_file_often(engine: Engine) -> int:
    engine.write("big.txt", MEGABYTE)
    engine.spec("bomb", secrets={f"A{number}": {"fromFile": "big.txt"} for number in range(999)})
    return 2


def many_large_secrets(engine: Engine) -> int:
    for number in range(70):
        engine.write(f"big{number}.txt", f"{number:04}{MEGABYTE[:-4]}")
        engine.spec(f"large-{number}", secrets={"A": {"fromFile": f"big{number}.txt"}})
    return 2


def links_to_comments(engine: Engine) -> int:
    comments = engine.write("a.yaml", "# xxxx\n" * 149_000)
    for number in range(700):
        (engine.folder / f"l{number}.yaml").symlink_to(comments.name)
    return 0


def large_files(engine: Engine) -> int:
    for number in range(80):
        text = f"apiVersion: v1\nkind: ConfigMap\ndata: {{a{number}: {'x' * 10**6}}}"
        engine.write(f"l{number}.yaml", text)
    return 2


def large_jobs(engine: Engine) -> None:
    """To read them takes seconds: not for each command."""
    env = {f"E{number}": "1" for number in range(600)}
    services = [{"name": f"s{number}", "image": "redis:7", "env": env} for number in range(28)]
    never = {"A": {"fromEnv": "ENGINE_SECRET_THAT_IS_NOT_SET"}}  # none starts
    for number in range(68):
        engine.spec(f"large-{number}", services=services, secrets=never)


SOURCES = (
    one_file_often,
    many_large_secrets,
    links_to_comments,
    large_files,
    large_jobs,
)


@pytest.mark.parametrize("hostile", SOURCES)
def test_no_source_takes_more_memory_than_the_engines_pod_has(
    engine: Engine, hostile: Callable[[Engine], int | None]
) -> None:
    code = hostile(engine)
    run_within_bounds(engine, "validate", str(engine.folder))
    if code is not None:
        run_within_bounds(engine, "reconcile", "--once", str(engine.folder), ends=code)
    with EngineProcess(engine) as staying:
        wait_for_state(engine, "good", "Succeeded")
        assert peak_mib(staying.process.pid) < LIMIT_MIB
        stopped = staying.stop()
    assert (stopped.code, "internal error" in stopped.stderr) == (0, False), stopped.stderr


def test_what_is_over_the_bound_is_the_problem_of_those_files_alone(
    engine: Engine, tmp_path: Path
) -> None:
    config = tmp_path / "engine.yaml"
    config.write_text(
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {maxSourceBytes: 9000}\n"
    )
    engine.spec("wide", env={f"E{number}": "1" for number in range(200)})
    engine.write("long.yaml", "apiVersion: v1\nkind: Other\nspec: " + "x" * 9000)
    run = engine.run("validate", str(engine.folder), "--config", str(config), ends=2)
    long, wide = run.stdout.splitlines()
    assert long.startswith(f"{engine.folder}/long.yaml: there is no room for this file: ")
    assert wide == (
        f"{engine.folder}/wide.yaml: more than the 9,000 bytes that a source may have, with those "
        "of this file (limits.maxSourceBytes)"
    )
    with EngineProcess(engine, "--config", str(config)):
        wait_for_state(engine, "good", "Succeeded")


def record(number: int) -> dict[str, Any]:
    labels = {"jobs.engine/component": "record", "jobs.engine/source": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"j{number}.record", "namespace": NAMESPACE, "labels": labels},
        "data": {"x": MEGABYTE, "record.json": "{"},
    }


def pod(number: int) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/managed-by": "engine",
        "jobs.engine/source": NAMESPACE,
        "jobs.engine/job": f"x{number}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"x{number}-12345678-1", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "schedulingGates": [{"name": "example.com/never"}],
            "containers": [
                {"name": "main", "image": "x", "env": [{"name": "A", "value": MEGABYTE}]}
            ],
        },
    }


def test_no_labelled_object_of_a_tenant_takes_memory_of_the_engine(
    sandbox: Sandbox, engine: Engine
) -> None:
    tenant = Api.from_kubeconfig(engine.kubeconfig)

    def make(first: int, end: int) -> None:
        for number in range(first, end):
            tenant.create("configmaps", record(number), NAMESPACE)
            tenant.create("pods", pod(number), NAMESPACE)

    with EngineProcess(engine) as staying:
        wait_for_state(engine, "good", "Succeeded")
        make(0, 25)
        engine.spec("after", script="true")
        wait_for_state(engine, "after", "Succeeded")
        assert peak_mib(staying.process.pid) < LIMIT_MIB / 2
        assert staying.stop().code == 0
    make(25, 90)
    run_within_bounds(engine, "status", "-n", NAMESPACE)
    run_within_bounds(engine, "reconcile", "--once", str(engine.folder), ends=0)
    engine.spec("later", script="true")
    with EngineProcess(engine) as staying:
        wait_for_state(engine, "later", "Succeeded")
        assert peak_mib(staying.process.pid) < LIMIT_MIB / 2
        assert staying.stop().code == 0


def run_within_bounds(engine: Engine, *arguments: str, ends: int | None = None) -> None:
    run = engine.run(*arguments, ends=ends)
    assert run.code in (0, 1, 2), run.stderr
    assert "internal error" not in run.stderr
    assert float(Path(engine.environment[PEAK]).read_text()) < LIMIT_MIB, arguments
