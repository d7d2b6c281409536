"""`engine prune` where the clock can be driven and the server told to fail."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.cluster.discovery import find_resources
from engine.sandbox import Clock, Fault, LostReply, Sandbox
from engine.sandbox.faults import Conflict, Refuse, ServerError, TooManyRequests
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from tests.support.api import Api
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import CommandResult, Engine

TTL = "jobs.engine/ttl"


class Namespace:
    """A sandbox whose time stands still, and the command line on it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        sandbox.namespace(NAMESPACE)
        self.sandbox = sandbox
        self.engine: Engine = engine_on(sandbox, folder)
        self.api = Api.from_kubeconfig(self.engine.kubeconfig)

    def config_map(self, name: str, ttl: str | None = "60", **metadata: Any) -> None:
        annotations = {} if ttl is None else {TTL: ttl}
        body = {"metadata": {"name": name, "annotations": annotations, **metadata}}
        self.api.create("configmaps", body, NAMESPACE)

    def pod(self, name: str, ttl: str = "60", **metadata: Any) -> None:
        body = {
            "metadata": {"name": name, "annotations": {TTL: ttl}, **metadata},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]},
        }
        self.api.create("pods", body, NAMESPACE)

    def prune(self, *arguments: str) -> CommandResult:
        return self.engine.run("prune", "-n", NAMESPACE, "-o", "json", *arguments)

    def names(self, resource: str) -> list[str]:
        found = self.sandbox.objects(resource, NAMESPACE)
        return sorted({item["metadata"]["name"] for item in found} - {ROOT_CERTIFICATE})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Namespace]:
    with Sandbox(clock=Clock(speed=0)) as sandbox:
        yield Namespace(sandbox, tmp_path)


def actions(run: CommandResult) -> dict[str, str]:
    return {entry["name"]: entry["action"] for entry in run.result["pruned"]}


def reason(run: CommandResult, name: str) -> str:
    (entry,) = [entry for entry in run.result["pruned"] if entry["name"] == name]
    return str(entry["reason"])


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_is_off_by_a_day_makes_no_difference(tmp_path: Path, days: int) -> None:
    start = datetime.now(UTC) + timedelta(days=days)
    with Sandbox(clock=Clock(start, speed=0)) as sandbox:
        place = Namespace(sandbox, tmp_path)
        place.pod("old", "11700")
        place.sandbox.clock.advance(8_400)
        place.pod("young", "11700")
        place.sandbox.clock.advance(3_600)
        run = place.prune()
        assert actions(run) == {"old": "deleted", "young": "kept"}
        assert reason(run, "old") == "ttl 11700s, age 12000s"


def test_nothing_but_metadata_is_read_and_nothing_is_written_when_nothing_expired(
    place: Namespace,
) -> None:
    place.pod("young")
    place.sandbox.requests.clear()
    assert place.prune().code == 0
    version, *found = [(entry.verb, entry.resource) for entry in place.sandbox.requests.where()]
    assert version == ("get", "")
    assert found == [("list", "pods"), ("list", "secrets"), ("list", "configmaps")]


def test_a_page_that_fails_once_is_asked_for_again(place: Namespace) -> None:
    for number in range(700):
        place.config_map(f"c-{number:03}")
    place.sandbox.clock.advance(100)
    place.sandbox.faults.add(Fault(ServerError(500), verb="list", resource="configmaps", skip=1))
    run = place.prune()
    assert run.code == 0, run.stderr
    assert place.names("configmaps") == []


def test_a_page_that_keeps_failing_is_told_and_what_was_read_is_done(place: Namespace) -> None:
    for number in range(700):
        place.config_map(f"c-{number:03}")
    place.pod("expired")
    place.sandbox.clock.advance(100)
    fault = Fault(ServerError(500), verb="list", resource="configmaps", skip=1, times=None)
    place.sandbox.faults.add(fault)
    run = place.prune()
    assert run.code == 6
    (error,) = run.result["errors"]
    assert error.startswith("configmaps in ci: the list ended after 500 objects: ")
    assert len(place.names("configmaps")) == 200
    assert place.names("pods") == []
    assert "Traceback" not in run.stderr


def test_a_continue_token_that_expires_in_the_middle_ends_the_list_and_is_told(
    place: Namespace,
) -> None:
    for number in range(600):
        place.config_map(f"c-{number:03}", "60" if number < 599 else "7d")
    place.sandbox.clock.advance(100)
    gone = "The provided continue parameter is too old"
    fault = Fault(Refuse(410, "Expired", gone), verb="list", resource="configmaps", skip=1)
    place.sandbox.faults.add(fault)
    run = place.prune()
    assert run.code == 6
    assert gone in run.result["errors"][0]
    assert len(place.names("configmaps")) == 100
    again = place.prune()
    assert again.code == 0
    assert place.names("configmaps") == ["c-599"]


def test_a_lost_reply_counts_as_deleted_and_a_busy_server_is_asked_again(place: Namespace) -> None:
    place.config_map("lost")
    place.pod("busy")
    place.sandbox.clock.advance(100)
    place.sandbox.faults.add(Fault(LostReply(), verb="delete", resource="configmaps"))
    place.sandbox.faults.add(Fault(TooManyRequests(0), verb="delete", resource="pods"))
    run = place.prune()
    assert run.code == 0, run.stderr
    assert actions(run) == {"lost": "deleted", "busy": "deleted"}


def test_what_only_seems_to_have_changed_is_judged_again_and_goes(place: Namespace) -> None:
    place.config_map("a")
    place.sandbox.clock.advance(100)
    place.sandbox.faults.add(Fault(Conflict(), verb="delete", resource="configmaps", times=2))
    run = place.prune()
    assert actions(run) == {"a": "deleted"}
    assert place.names("configmaps") == []


def test_a_webhook_that_denies_and_a_missing_right_are_told_and_the_others_go(
    place: Namespace,
) -> None:
    for name in ("denied", "fine"):
        place.config_map(name)
    place.api.create("secrets", _annotated("secret"), NAMESPACE)
    place.sandbox.clock.advance(100)
    words = 'admission webhook "guard.example" denied the request: not this one'
    refusal = Refuse(403, "Forbidden", words)
    place.sandbox.faults.add(Fault(refusal, verb="delete", name="denied", times=None))
    place.sandbox.deny("delete", "secrets")
    run = place.prune()
    assert run.code == 1
    assert actions(run) == {"denied": "failed", "fine": "deleted", "secret": "failed"}
    assert reason(run, "denied") == f"denied by a webhook: {words}"
    assert reason(run, "secret").startswith("forbidden: ")
    assert place.names("configmaps") == ["denied"]


def test_a_kind_that_may_not_be_listed_is_told_and_the_other_kinds_go(place: Namespace) -> None:
    place.config_map("a")
    place.sandbox.clock.advance(100)
    place.sandbox.deny("list", "secrets")
    run = place.prune()
    assert run.code == 6
    assert run.result["errors"][0].startswith("secrets in ci: ")
    assert actions(run) == {"a": "deleted"}


def test_the_limit_of_deletes_is_kept_and_told(place: Namespace) -> None:
    for number in range(10):
        place.config_map(f"c-{number}")
    place.sandbox.clock.advance(100)
    run = place.prune("--max-deletes", "3")
    assert (run.code, run.result["errors"]) == (0, [])
    assert run.stderr == "warning: the limit of 3 deletes is reached, 7 more would go\n"
    assert sorted(actions(run).values()) == ["deleted"] * 3 + ["kept"] * 7
    assert len(place.names("configmaps")) == 7


def test_the_operators_limit_holds_where_the_command_line_has_none(place: Namespace) -> None:
    for number in range(4):
        place.config_map(f"c-{number}")
    place.sandbox.clock.advance(100)
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {maxDeletesPerPass: 1}\n"
    config = place.engine.write("../engine.yaml", text)
    assert place.prune("--config", str(config)).code == 0
    assert len(place.names("configmaps")) == 3


def test_another_cleaners_mark_deletes_nothing_until_it_is_named(place: Namespace) -> None:
    for number in range(3):
        place.config_map(f"c-{number}", None, annotations={"janitor/ttl": "60"})
    place.config_map("both", annotations={TTL: "60", "janitor/ttl": "7d"})
    place.config_map("gitlab", None, annotations={"cleaner.kubernetes.gitlab.org/ttl": "60"})
    place.sandbox.clock.advance(100)
    run = place.prune()
    assert (run.code, actions(run)) == (0, {"both": "deleted", "gitlab": "deleted"})
    assert run.stderr == (
        "note: left alone, because neither --annotation nor -n names them: 3 with janitor/ttl\n"
    )
    assert place.names("configmaps") == ["c-0", "c-1", "c-2"]


@pytest.mark.parametrize("by", ["flag", "configuration"])
def test_another_cleaners_mark_counts_once_it_is_named(place: Namespace, by: str) -> None:
    place.config_map("marked", None, annotations={"janitor/ttl": "60"})
    place.sandbox.clock.advance(100)
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = place.engine.write("../engine.yaml", f"{text}prune: {{annotations: [janitor/ttl]}}\n")
    flags = ["--annotation", "janitor/ttl"] if by == "flag" else ["--config", str(config)]
    run = place.prune(*flags)
    assert (run.code, actions(run), run.stderr) == (0, {"marked": "deleted"}, "")


def test_a_mark_on_an_object_of_kubernetes_own_namespaces_deletes_nothing(
    place: Namespace,
) -> None:
    for namespace in ("kube-system", "kube-public"):
        place.sandbox.namespace(namespace)
        for resource in ("configmaps", "secrets"):
            place.api.create(resource, _annotated("x"), namespace)
    place.config_map("mine")
    place.sandbox.clock.advance(100)
    run = place.engine.run("prune", "-A", "-o", "json", ends=0)
    assert actions(run) == {"mine": "deleted"}
    assert run.stderr == (
        "note: left alone, because neither --annotation nor -n names them: "
        "2 in kube-public, 2 in kube-system\n"
    )
    run = place.engine.run("prune", "-A", "-n", "kube-public", "-o", "json", ends=0)
    assert {entry["namespace"] for entry in run.result["pruned"]} == {"kube-public"}
    run = place.engine.run("prune", "-n", "kube-system", "-o", "json", ends=0)
    assert sorted(entry["action"] for entry in run.result["pruned"]) == ["deleted"] * 2
    place.engine.run("prune", "-A", "-n", NAMESPACE, ends=2)


def test_the_certificate_that_every_pod_needs_is_never_pruned(place: Namespace) -> None:
    place.api.patch("configmaps", ROOT_CERTIFICATE, _annotated(ROOT_CERTIFICATE), NAMESPACE)
    place.sandbox.clock.advance(100)
    for where in (["-n", NAMESPACE], ["-A"]):
        run = place.engine.run("prune", *where, "-o", "json", ends=0)
        assert actions(run) == {ROOT_CERTIFICATE: "protected"}
    assert place.sandbox.get("configmaps", NAMESPACE, ROOT_CERTIFICATE) is not None


@pytest.mark.parametrize("mode", ["client", "server"])
def test_a_dry_run_says_what_would_go_and_deletes_nothing(place: Namespace, mode: str) -> None:
    place.config_map("a")
    place.sandbox.clock.advance(100)
    run = place.prune(f"--dry-run={mode}")
    assert run.code == 0
    assert actions(run) == {"a": "would-delete"}
    assert place.names("configmaps") == ["a"]
    asked = place.sandbox.requests.where("delete", "configmaps")
    assert len(asked) == (1 if mode == "server" else 0)


def test_other_kinds_are_found_by_discovery(place: Namespace) -> None:
    lease = {**_annotated("lease"), "spec": {"holderIdentity": "x"}}
    place.api.create("coordination.k8s.io/v1/leases", lease, NAMESPACE)
    place.sandbox.clock.advance(100)
    run = place.prune("--kinds", "leases.coordination.k8s.io")
    assert run.code == 0, run.stderr
    assert actions(run) == {"lease": "deleted"}


def test_discovery_asks_for_no_more_than_the_kinds_that_are_named(place: Namespace) -> None:
    client = connect(str(place.engine.kubeconfig)).client
    assert len(find_resources(client, ["pods", "secrets", "configmaps"])) == 3
    assert client.requests == 0
    (events,) = find_resources(client, ["events"])
    assert (events.path("ci", "x"), client.requests) == ("/api/v1/namespaces/ci/events/x", 1)
    found = find_resources(client, ["leases.coordination.k8s.io"] * 2)
    assert [r.path("ci") for r in found] == ["/apis/coordination.k8s.io/v1/namespaces/ci/leases"]
    assert client.requests == 1 + 2


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("deployments", "the server has no deployments in v1 (name a kind by its plural, and with"),
        ("widgets.example.com", "the server has no API group example.com"),
        ("pods.x/../../api/v1?y=", "the server has no API group x/../../api/v1?y="),
        ("namespaces", "objects of this kind are in no namespace"),
    ],
)
def test_a_kind_that_is_not_there_is_told_and_nothing_is_deleted(
    place: Namespace, kind: str, words: str
) -> None:
    place.config_map("a")
    place.sandbox.clock.advance(100)
    run = place.prune("--kinds", f"configmaps,{kind}")
    assert run.code == 2
    assert words in run.stderr
    assert place.names("configmaps") == ["a"]


def test_without_an_answer_from_the_server_the_exit_code_says_so(place: Namespace) -> None:
    place.sandbox.stop()
    run = place.prune("--kinds", "pods")
    assert run.code == 6
    assert "no answer from the API server" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.result["pruned"] == []


def _annotated(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {TTL: "60"}}}
