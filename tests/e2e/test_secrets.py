"""A secret is in the Secret, and nowhere else: not even when the engine crashes."""

import base64
import json
from pathlib import Path

import pytest

from engine.sandbox import Fault, Refuse, Run, Sandbox
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

VALUE = "hunter2-of-the-environment"
ENCODED = "aHVudGVyMi1vZi10aGUtZW52aXJvbm1lbnQ="
CRASH = """
from engine.lifecycle.actions import WriteRecord
from engine.reconcile.reconciler import EXECUTORS
def crash(self, state, action):
    raise RuntimeError(f"crashed beside {state.rendered.secrets.variables['TOKEN']}")
EXECUTORS[WriteRecord] = crash
"""


@pytest.fixture
def telling(engine: Engine, tmp_path: Path) -> Engine:
    """An engine whose job has a secret, from the environment, and a temporary folder of its own."""
    engine.environment["ENGINE_SECRET_TOKEN"] = VALUE
    engine.environment["TMPDIR"] = str(tmp_path)
    engine.spec("job", script="true", secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}})
    return engine


def places_with_the_secret(sandbox: Sandbox, folder: Path, *texts: str) -> list[str]:
    stored = {
        kind: json.dumps(sandbox.objects(kind, "ci")) for kind in ("pods", "configmaps", "events")
    }
    files = {
        str(path): path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
    }
    printed = {f"output {number}": text for number, text in enumerate(texts)}
    everything = {**stored, **files, **printed}
    return [place for place, text in everything.items() if VALUE in text or ENCODED in text]


def test_a_crash_at_vv_tells_its_traceback_without_the_secret(
    telling: Engine, sandbox: Sandbox, tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(CRASH)
    telling.environment["PYTHONPATH"] = str(hooks)
    run = telling.reconcile("-vv")
    assert run.code != 0
    assert "RuntimeError: crashed beside ***" in run.stderr
    assert "internal error: RuntimeError" in run.stderr
    assert places_with_the_secret(sandbox, tmp_path, run.stdout, run.stderr) == []


def test_without_vv_a_crash_is_one_line(telling: Engine, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(CRASH)
    telling.environment["PYTHONPATH"] = str(hooks)
    run = telling.reconcile()
    assert "Traceback" not in run.stderr
    assert run.stderr.count("internal error") == 1


def test_what_a_container_says_of_its_secret_is_not_recorded(
    telling: Engine, sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.node.will(Run(exit_code=3, message=f"the token was {VALUE}"), pod="job-*")
    run = telling.reconcile("-vv")
    assert run.job("job")["message"] == "exit code 3: the token was ***"
    records = [
        c for c in sandbox.objects("configmaps", "ci") if c["metadata"]["name"] == "job.record"
    ]
    assert "the token was ***" in records[0]["data"]["record.json"]
    status = telling.run("status", "-n", "ci", "-o", "json")
    assert VALUE not in run.stdout + run.stderr + status.stdout


def test_a_refusal_that_quotes_the_secret_is_told_without_it(
    telling: Engine, sandbox: Sandbox, tmp_path: Path
) -> None:
    words = f'admission webhook "w" denied the request: {VALUE} and {ENCODED} are weak'
    refusal = Refuse(403, "Forbidden", words)
    sandbox.faults.add(Fault(refusal, verb="create", resource="secrets", times=None))
    run = telling.reconcile("-vv", ends=5)
    assert run.job("job")["message"].endswith("*** and *** are weak")
    assert places_with_the_secret(sandbox, tmp_path, run.stdout, run.stderr) == []


@pytest.mark.parametrize("staying", [False, True])
def test_no_spec_takes_a_secret_of_the_operators_to_the_cluster(
    engine: Engine, objects: Objects, sandbox: Sandbox, *, staying: bool
) -> None:
    engine.environment["OPERATOR_DEPLOY_KEY"] = VALUE
    engine.write(".git/config", VALUE)
    engine.spec("env", script="true", secrets={"A": {"fromEnv": "OPERATOR_DEPLOY_KEY"}})
    engine.spec("file", script="true", secrets={"A": {"fromFile": ".git/config"}})
    password = {"fromEnv": "OPERATOR_DEPLOY_KEY"}
    login = {"registry": "r.example", "username": "ci", "password": password}
    engine.spec("login", script="true", registryCredentials=[login])
    if staying:
        with EngineProcess(engine) as running:
            engine.spec("good", script="true")
            running.wait_for_line("/good: Succeeded")
            running.wait_for_line("the variable OPERATOR_DEPLOY_KEY is not allowed", times=2)
            running.wait_for_line("fromFile .git/config is hidden")
            said = running.text
        assert {pod["metadata"]["labels"]["jobs.engine/job"] for pod in objects.pods()} == {"good"}
    else:
        said = engine.reconcile(ends=2).stderr
        assert objects.pods() == []
    assert said.count("the variable OPERATOR_DEPLOY_KEY is not allowed") == 2
    assert "fromFile .git/config is hidden" in said
    assert sandbox.objects("secrets", "ci") == []


def test_a_variable_that_the_operator_allows_is_taken(engine: Engine, sandbox: Sandbox) -> None:
    engine.environment["CI_KEY"] = VALUE
    engine.spec("env", script="true", secrets={"A": {"fromEnv": "CI_KEY"}})
    engine.reconcile("--allow-secret-env", "CI_*", ends=0)
    (secret,) = sandbox.objects("secrets", "ci")
    assert base64.b64decode(secret["data"]["A"]).decode() == VALUE
