"""Whatever a name holds, a request goes to the object of that name and to no other."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.errors import EngineError, UsageError
from engine.lifecycle.ownership import Marked
from engine.refs import Ref
from engine.sandbox import Sandbox
from engine.wellknown import TTL
from tests.component.sandbox.conftest import ci, sandbox
from tests.support.sandbox_namespace import Namespace

__all__ = ["ci", "sandbox"]

Ask = Callable[[Client, Ref, str], object]
VERBS: dict[str, Ask] = {
    "get": lambda client, ref, _: api.get(client, ref),
    "patch": lambda client, ref, _: api.patch(client, ref, []),
    "delete": lambda client, ref, uid: api.delete(
        client,
        api.OWN[ref.kind],
        {"namespace": ref.namespace, "name": ref.name, "uid": uid, "annotations": {TTL: "1"}},
        Marked((TTL,)),
    ),
    "log": lambda client, ref, _: list(api.read_log(client, ref, "main")),
}
WAYS_OUT = (
    "../secrets/victim",
    "../../ci/secrets/victim",
    "x/../../secrets/victim",
    "a?b#c",
    "%2e",
)


@pytest.fixture
def client(sandbox: Sandbox, tmp_path: Path) -> Client:
    return connect(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))).client


@pytest.fixture
def victim(ci: Namespace) -> str:
    uid = ci.secret("victim", a="made up").body["metadata"]["uid"]
    ci.sandbox.requests.clear()
    return str(uid)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_name_leads_to_no_other_path(
    verb: str, name: str, client: Client, victim: str, sandbox: Sandbox
) -> None:
    for ref in (Ref("Pod", "ci", name), Ref("Pod", name, "victim")):
        with suppress(EngineError):
            VERBS[verb](client, ref, victim)
    assert {entry.resource for entry in sandbox.requests} <= {"pods", "pods/log", ""}
    assert len(sandbox.requests) == 2
    assert all(".." not in entry.path.split("/") for entry in sandbox.requests)
    assert sandbox.objects("secrets", "ci")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "ref",
    [Ref("Pod", "ci", ""), Ref("Pod", "ci", ".."), Ref("Pod", "..", "a"), Ref("Pod", ".", "a")],
)
def test_without_a_name_of_its_own_there_is_no_request(
    verb: str, ref: Ref, client: Client, victim: str, sandbox: Sandbox
) -> None:
    with pytest.raises(UsageError):
        VERBS[verb](client, ref, victim)
    assert len(sandbox.requests) == 0
