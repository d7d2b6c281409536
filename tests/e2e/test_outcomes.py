"""How a job's container fares, and what the user is told of it."""

import base64
import json

import pytest

from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("real")

ODD = "a: b # c\n\t{{ x }} 'q' \"d\" $(HOME) $$HOME ${X} \\n ä ☃ 𝄞 — end "


def test_the_output_of_a_script_is_in_its_log_and_the_exit_code_is_0(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("hello", script="echo hello from $0\n")
    run = engine.reconcile(ends=0)
    assert objects.log("hello") == "hello from /engine/scripts/main\n"
    job = run.job("hello")
    assert (job["state"], job["reason"], job["exitCode"]) == ("Succeeded", "Succeeded", 0)
    assert job["changed"] is True
    assert job["startedAt"] <= job["finishedAt"]
    assert job["attempts"][0]["uid"] == objects.pod("hello")["metadata"]["uid"]


def test_a_script_that_ends_with_3_is_reported_with_its_exit_code(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("three", script="exit 3")
    run = engine.reconcile(ends=1)
    job = run.job("three")
    assert (job["state"], job["reason"], job["exitCode"]) == ("Failed", "ScriptFailed", 3)
    assert job["attempts"][0]["exitCode"] == 3
    assert engine.status()["three"]["reason"] == "ScriptFailed"
    assert objects.wait_until_over("three")["status"]["phase"] == "Failed"


def test_a_script_stops_at_its_first_failing_command(engine: Engine, objects: Objects) -> None:
    engine.spec("strict", script="echo one\nfalse\necho two\n")
    engine.reconcile(ends=1)
    assert objects.log("strict") == "one\n"


def test_env_files_and_secrets_reach_the_container_as_written(
    engine: Engine, objects: Objects
) -> None:
    engine.environment["ENGINE_SECRET_TOKEN"] = f"secret {ODD}"
    engine.write("below/token.txt", f"file {ODD}\n")
    engine.spec(
        "odd",
        env={"ODD": ODD, "EMPTY": ""},
        files={"config/ä b.txt": f"{ODD}\n\nlast line without end"},
        secrets={
            "FROM_ENV": {"fromEnv": "ENGINE_SECRET_TOKEN"},
            "FROM_FILE": {"fromFile": "below/token.txt"},
            "VALUE": {"value": f"value {ODD}"},
        },
        script=(
            "for v in ODD EMPTY FROM_ENV FROM_FILE VALUE; do\n"
            '  eval "printf %s \\"\\$$v\\"" | base64 -w0; echo\n'
            "done\n"
            "base64 -w0 '/engine/files/config/ä b.txt'; echo\n"
        ),
    )
    engine.reconcile(ends=0)
    seen = [_decode(line) for line in objects.log("odd").splitlines()]
    assert seen == [
        ODD,
        "",
        f"secret {ODD}",
        f"file {ODD}\n",
        f"value {ODD}",
        f"{ODD}\n\nlast line without end",
    ]


def test_a_secret_is_in_the_secret_and_nowhere_else(engine: Engine, objects: Objects) -> None:
    engine.environment["ENGINE_SECRET_TOKEN"] = "hunter2-in-the-environment"
    engine.spec(
        "quiet", secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}, script="test -n $TOKEN"
    )
    run = engine.reconcile("-vv", ends=0)
    kinds = ("pods", "configmaps", "events")
    told = [json.dumps(objects.api.list(kind, objects.namespace)) for kind in kinds]
    told += [run.stdout, run.stderr]
    assert not [text for text in told if "hunter2" in text]


def test_command_and_args_are_passed_on_as_they_are(engine: Engine, objects: Objects) -> None:
    engine.spec("plain", command=["printf", "%s|"], args=["a b", "", "*"])
    engine.reconcile(ends=0)
    assert objects.log("plain") == "a b||*|"
    assert objects.owned() == []


def test_a_command_that_is_not_there_is_a_configuration_error(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("nothing", command=["/no/such/program"])
    run = engine.reconcile(ends=1)
    job = run.job("nothing")
    assert job["reason"] == "ContainerConfigError"
    assert "/no/such/program" in job["message"]


def test_an_init_container_runs_first_and_its_failure_ends_the_job(
    engine: Engine, objects: Objects
) -> None:
    init = [{"name": "prepare", "image": engine.image, "script": "echo ready"}]
    engine.spec("after", initContainers=init, script="echo main")
    broken = [{"name": "prepare", "image": engine.image, "script": "exit 7"}]
    engine.spec("never", initContainers=broken, script="echo main")
    run = engine.reconcile(ends=1)
    assert run.job("after")["state"] == "Succeeded"
    assert objects.log("after", "prepare") == "ready\n"
    job = run.job("never")
    assert (job["reason"], job["exitCode"]) == ("ScriptFailed", 7)
    assert job["message"] == "init container prepare: exit code 7"


def test_a_service_serves_and_does_not_keep_the_job_alive(engine: Engine, objects: Objects) -> None:
    service = {
        "name": "web",
        "image": engine.image,
        "command": [
            "sh",
            "-c",
            "echo served > /tmp/index.html; httpd -p 8080 -h /tmp\n"  # noqa: ISC004
            "trap 'exit 0' TERM; while :; do sleep 0.2; done",
        ],
        "ports": [8080],
    }
    ask = "until wget -qO- http://127.0.0.1:8080/; do sleep 0.1; done"
    engine.spec("served", services=[service], script=ask)
    run = engine.reconcile(ends=0)
    assert run.job("served")["reason"] == "Succeeded"
    assert objects.wait_until_over("served")["status"]["phase"] == "Succeeded"
    assert objects.log("served") == "served\n"


def test_memory_beyond_the_limit_is_told_apart_from_a_failing_script(engine: Engine) -> None:
    engine.spec(
        "hungry",
        command=["sh", "-c", "tail /dev/zero"],
        resources={"limits": {"memory": "16Mi"}},
    )
    run = engine.reconcile(ends=1)
    assert run.job("hungry")["reason"] == "OOMKilled"


def _decode(line: str) -> str:
    return base64.b64decode(line).decode()
