"""An object in the cluster beside what would be sent: only what somebody changed is different."""

from typing import Any

from engine.inspect.manifest_diff import comparable, masked

LABELS = {"jobs.engine/run": "1a2b3c4d", "jobs.engine/attempt": "1", "team": "web"}


def manifest(name: str = "job-2", image: str = "a:1", **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": image, "env": [{"name": "A", "value": "1"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ci",
            "labels": {**LABELS, "jobs.engine/run": name},
        },
        "spec": {
            "containers": [main],
            "volumes": [{"name": "config", "configMap": {"name": name}}],
            "schedulingGates": [{"name": "jobs.engine/dependents"}],
            **spec,
        },
    }


def live(**spec: Any) -> dict[str, Any]:
    """As a list of the API has it: with defaults, a token's volume, a node and a status."""
    pod = manifest("job-1", **spec)
    (main,) = pod["spec"]["containers"]
    token = {"name": "kube-api-access-x7k2p"}
    main |= {"terminationMessagePath": "/dev/termination-log", "volumeMounts": [dict(token)]}
    volumes = [*pod["spec"]["volumes"], {**token, "projected": {}}]
    whole = {**pod["spec"], "nodeName": "node", "dnsPolicy": "ClusterFirst", "volumes": volumes}
    whole.pop("schedulingGates")
    marks = {"uid": "1", "resourceVersion": "5", "annotations": {"cni/ip": "10.0.0.1"}}
    found = {"metadata": {**pod["metadata"], **marks}, "spec": whole}
    return {**found, "status": {"phase": "Running"}}


def admitted(sent: dict[str, Any]) -> dict[str, Any]:
    pod = live()
    metadata = {**sent["metadata"], "uid": "2"}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], **_volumes(sent)}}


def _volumes(sent: dict[str, Any]) -> dict[str, Any]:
    token = {"name": "kube-api-access-9zzzz", "projected": {}}
    return {"volumes": [*sent["spec"]["volumes"], token]}


def sides(found: dict[str, Any], answer: dict[str, Any], sent: dict[str, Any]) -> Any:
    return comparable(found, sent), comparable(answer, sent)


def test_the_same_spec_makes_no_difference() -> None:
    sent = manifest()
    before, after = sides(live(), admitted(sent), sent)
    assert before == after


def test_a_container_and_a_variable_that_are_gone_are_differences() -> None:
    found, sent = live(), manifest()
    found["spec"]["containers"].append({"name": "redis", "image": "redis:7"})
    found["spec"]["containers"][0]["env"].append({"name": "B", "value": "2"})
    before, after = sides(found, admitted(sent), sent)
    assert [c["name"] for c in before["spec"]["containers"]] == ["main", "redis"]
    assert [v["name"] for v in before["spec"]["containers"][0]["env"]] == ["A", "B"]
    assert [c["name"] for c in after["spec"]["containers"]] == ["main"]


def test_what_is_no_longer_set_is_a_difference() -> None:
    sent = manifest()
    before, after = sides(live(priority=5), admitted(sent), sent)
    assert before["spec"].pop("priority") == 5
    assert before == after


def test_neither_side_of_a_secret_has_a_value() -> None:
    secret = {**manifest(), "kind": "Secret", "data": {"A": "aGlkZGVu"}}
    secret.pop("spec")
    found = {**secret, "metadata": {**secret["metadata"], "name": "job-1"}, "data": {"B": "b2xk"}}
    before, after = sides(found, secret, secret)
    assert (before["data"], after["data"]) == ({"B": "***"}, {"A": "***"})
    assert masked(secret)["data"] == {"A": "***"}
    assert secret["data"] == {"A": "aGlkZGVu"}
