"""Pods: what was listed, heard, written and missed comes to one picture."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.cluster import api
from engine.cluster.client import Client
from engine.informers.pods import PodInformer
from engine.informers.reflector import WatchContext
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.sandbox import Sandbox
from engine.status.outcome import Reason
from engine.wellknown import JOB, SOURCE
from tests.component.informers.conftest import Handler, miss
from tests.support.sandbox_namespace import Namespace, container

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def informer(client: Client, handler: Handler) -> Iterator[PodInformer]:
    pods = PodInformer(
        WatchContext(client, Supervisor(handler.emit), handler.on_change, handler.on_error),
        "ci",
        f"{SOURCE}=team",
    )
    yield pods
    pods.reflector.stop()
    pods.reflector.join(5)


@pytest.fixture
def make(ci: Namespace) -> Make:
    """A pod of the source; one that is gated stays as it is, whatever the time."""

    def made(name: str, source: str = "team") -> dict[str, Any]:
        body = {
            "metadata": {"name": name, "labels": {JOB: name, SOURCE: source}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [container()],
                "schedulingGates": [{"name": "test/gate"}],
            },
        }
        pod: dict[str, Any] = ci.client.post(ci.path("pods"), body).body
        return pod

    return made


def names(informer: PodInformer) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in informer.all_items())


def delete(ci: Namespace, name: str) -> None:
    assert ci.client.delete(ci.path("pods", name), {"gracePeriodSeconds": 0}).code == 200


def label(ci: Namespace, name: str) -> dict[str, Any]:
    """A change of the pod, and what the server answers to it."""
    pod: dict[str, Any] = ci.client.patch(
        ci.path("pods", name), {"metadata": {"labels": {"touched": "yes"}}}
    ).body
    return pod


def test_what_is_listed_is_told_once_and_only_of_this_source(
    informer: PodInformer, make: Make, handler: Handler
) -> None:
    make("a"), make("b"), make("c", source="other")
    assert not informer.has_synced
    informer.list()
    assert (informer.has_synced, names(informer), handler.jobs) == (
        True,
        ["a", "b"],
        {"a": 1, "b": 1},
    )
    informer.list()
    assert handler.jobs == {"a": 1, "b": 1}


def test_a_watch_goes_on_where_the_list_ended(
    informer: PodInformer, make: Make, handler: Handler, ci: Namespace
) -> None:
    make("listed")
    informer.list()
    make("between")
    informer.start()
    handler.wait(lambda: handler.jobs["between"] == 1)
    make("later")
    handler.wait(lambda: handler.jobs["later"] == 1)
    delete(ci, "between")
    handler.wait(lambda: handler.jobs["between"] == 3)
    assert handler.jobs["listed"] == 1
    assert names(informer) == ["later", "listed"]


def test_what_was_missed_is_listed_again_and_the_past_not_told_anew(
    informer: PodInformer, make: Make, handler: Handler, ci: Namespace, sandbox: Sandbox
) -> None:
    make("stays"), make("goes"), make("changes")
    informer.list()
    informer.start()
    make("last")
    handler.wait(lambda: handler.jobs["last"] == 1)

    def unseen() -> None:
        delete(ci, "goes")
        make("comes")
        label(ci, "changes")

    miss(sandbox, "pods", unseen)
    handler.wait(lambda: handler.jobs["comes"] == 1 and handler.jobs["goes"] == 2)
    assert names(informer) == ["changes", "comes", "last", "stays"]

    make("afterwards")
    handler.wait(lambda: handler.jobs["afterwards"] == 1)
    assert handler.jobs == {
        "stays": 1, "goes": 2, "changes": 2, "last": 1, "comes": 1, "afterwards": 1,
    }  # fmt: skip


def test_a_late_reply_brings_nothing_back(
    informer: PodInformer, make: Make, handler: Handler, ci: Namespace, sandbox: Sandbox
) -> None:
    make("heard"), make("missed"), make("said")
    informer.list()
    informer.start()
    late = {name: label(ci, name) for name in ("heard", "missed", "said")}
    handler.wait(lambda: handler.jobs["said"] == 2)
    delete(ci, "heard")
    handler.wait(lambda: handler.jobs["heard"] == 4)
    miss(sandbox, "pods", lambda: delete(ci, "missed"))
    handler.wait(lambda: handler.jobs["missed"] == 3)
    informer.mark_deleted(JobKey("ci", "said"), late["said"]["metadata"]["uid"])
    for pod in late.values():
        informer.upsert(pod)
    assert names(informer) == []


def test_an_older_list_or_version_takes_back_nothing_that_was_written(
    informer: PodInformer,
    make: Make,
    ci: Namespace,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make("changed"), make("gone")
    listed = api.list_all(client, ci.path("pods"), f"{SOURCE}=team")
    older = copy.deepcopy(listed[0]["items"][0])
    written = [label(ci, "changed"), make("created")]
    uid = label(ci, "gone")["metadata"]["uid"]
    delete(ci, "gone")
    for pod in written:
        informer.upsert(pod)
    informer.mark_deleted(JobKey("ci", "gone"), uid)

    with monkeypatch.context() as slow:
        slow.setattr(api, "list_all", lambda *_: listed)
        informer.list()
    informer.upsert(older)
    assert names(informer) == ["changed", "created"]
    assert informer.items(JobKey("ci", "changed")) == (written[0],)


def test_how_a_pod_ended_is_known_after_it_was_missed(
    informer: PodInformer, handler: Handler, ci: Namespace, sandbox: Sandbox
) -> None:
    labels = {JOB: "job", SOURCE: "team"}
    body = {
        "metadata": {"name": "job", "labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [container()]},
    }
    ci.client.post(ci.path("pods"), body)
    sandbox.clock.advance(60)
    assert ci.phase() == "Succeeded"
    informer.list()
    uid = ci.pod()["metadata"]["uid"]
    informer.start()
    miss(sandbox, "pods", lambda: delete(ci, "job"))
    handler.wait(lambda: handler.jobs["job"] == 2)
    end = informer.deleted_outcome(uid)
    assert end is not None
    assert end.reason is Reason.SUCCEEDED
