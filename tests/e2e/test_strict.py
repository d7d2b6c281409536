"""A field that the server doesn't know is refused by it, and ends the job with its words."""

import json
from pathlib import Path

import pytest

from engine.api.kubernetes_schema import CORE, PATCH, TYPES
from engine.sandbox import Sandbox
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

_SCHEMAS = Path(__file__).parents[2] / "schemas"


@pytest.fixture
def newer_than_the_server(tmp_path: Path) -> str:
    """The file of its types."""
    files = {name: json.loads((_SCHEMAS / name).read_text()) for name in (TYPES, PATCH)}
    for schema in files.values():
        spec = schema["definitions"][f"{CORE}.PodSpec"]
        spec["properties"]["newField"] = {"type": ["string", "null"]}
    path = tmp_path / "types.json"
    path.write_text(json.dumps(files))
    return str(path)


def test_what_only_a_newer_kubernetes_knows_ends_the_job_with_the_servers_words(
    engine: Engine, sandbox: Sandbox, objects: Objects, newer_than_the_server: str
) -> None:
    engine.spec("job", script="true", podPatch={"spec": {"newField": "x"}})
    run = engine.reconcile("--kubernetes-schema", newer_than_the_server, ends=5)
    job = run.job("job")
    assert (job["state"], job["reason"]) == ("Failed", "AdmissionRefused")
    assert job["message"].endswith('strict decoding error: unknown field "spec.newField"')
    assert objects.pods() == []
    assert len(sandbox.requests.where("create", "pods")) == 1
    again = engine.reconcile("--kubernetes-schema", newer_than_the_server)
    assert again.job("job")["changed"] is False
    assert len(sandbox.requests.where("create", "pods")) == 1


def test_without_the_newer_schema_nothing_is_sent(engine: Engine, sandbox: Sandbox) -> None:
    engine.spec("job", script="true", podPatch={"spec": {"newField": "x"}})
    run = engine.reconcile(ends=2)
    assert 'unknown field "spec.podPatch.spec.newField"' in run.stderr
    assert sandbox.requests.writes == []


def test_every_object_is_sent_strictly(engine: Engine, sandbox: Sandbox) -> None:
    engine.spec(
        "job",
        script="true",
        secrets={"TOKEN": {"value": "x"}},
        ttlAfterFinished={"success": "1h"},
        pullPolicy=["Always", "Never"],
    )
    engine.reconcile(ends=0)
    mine = [record for record in sandbox.requests.writes if record.user_agent.startswith("engine")]
    sent = [record for record in mine if not record.verb.startswith("delete")]
    assert {record.verb for record in sent} == {"create", "update", "patch"}
    assert [record for record in sent if not record.strict] == []
