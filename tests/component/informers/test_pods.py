"""Pods: what was listed, heard, written and missed comes to one picture."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.cluster import api
from engine.cluster.client import Client, Keep
from engine.informers.pods import PodInformer
from engine.informers.reflector import WatchContext
from engine.lifecycle.state import slim_pod
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.sandbox import Sandbox
from engine.status.outcome import Reason
from engine.wellknown import JOB, SOURCE
from tests.component.informers.conftest import Handler, miss
from tests.support.sandbox_namespace import Namespace, container

Make = Callable[..., dict[str, Any]]
RUN = "0a1b2c3d"


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
            "metadata": {"name": f"{name}-{RUN}-1", "labels": {SOURCE: source}},
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
    """Names of the jobs whose pods there are."""
    return sorted(pod["metadata"]["name"].rsplit("-", 2)[0] for pod in informer.all_items())


def delete(ci: Namespace, name: str) -> None:
    path = ci.path("pods", f"{name}-{RUN}-1")
    assert ci.client.delete(path, {"gracePeriodSeconds": 0}).code == 200


def label(ci: Namespace, name: str, **labels: str | None) -> dict[str, Any]:
    """A change of the pod, and what the server answers to it."""
    pod: dict[str, Any] = ci.client.patch(
        ci.path("pods", f"{name}-{RUN}-1"), {"metadata": {"labels": labels or {"touched": "yes"}}}
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
    delete(ci, "said")
    assert informer.get(f"said-{RUN}-1", late["said"]["metadata"]["uid"]) is None
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
    assert informer.get(f"gone-{RUN}-1", uid) is None

    def list_older(*_: object, keep: Keep, **__: object) -> list[dict[str, Any]]:
        return [{**page, "items": [*map(keep, page["items"])]} for page in listed]

    with monkeypatch.context() as slow:
        slow.setattr(api, "list_all", list_older)
        informer.list()
    informer.upsert(older)
    assert names(informer) == ["changed", "created"]
    assert informer.items(JobKey("ci", "changed")) == (slim_pod(written[0]),)


def test_how_a_pod_ended_is_known_after_it_was_missed(
    informer: PodInformer, handler: Handler, ci: Namespace, sandbox: Sandbox
) -> None:
    body = {
        "metadata": {"name": f"job-{RUN}-1", "labels": {SOURCE: "team"}},
        "spec": {"restartPolicy": "Never", "containers": [container()]},
    }
    ci.client.post(ci.path("pods"), body)
    sandbox.clock.advance(60)
    pod = ci.pod(f"job-{RUN}-1")
    assert pod["status"]["phase"] == "Succeeded"
    informer.list()
    uid = pod["metadata"]["uid"]
    informer.start()
    miss(sandbox, "pods", lambda: delete(ci, "job"))
    handler.wait(lambda: handler.jobs["job"] == 2)
    end = informer.observe(JobKey("ci", "job"))[2].get(uid)
    assert end is not None
    assert end.reason is Reason.SUCCEEDED


def test_a_pod_is_its_names_jobs_whatever_its_labels_say(
    informer: PodInformer, make: Make, handler: Handler, ci: Namespace
) -> None:
    make("mine")
    informer.list()
    informer.start()
    label(ci, "mine", **{JOB: "another"})
    handler.wait(lambda: handler.jobs["mine"] == 2)
    assert len(informer.items(JobKey("ci", "mine"))) == 1
    assert informer.items(JobKey("ci", "another")) == ()


def test_a_pod_that_the_selector_picks_no_longer_is_found_by_its_name(
    informer: PodInformer, make: Make, handler: Handler, ci: Namespace, sandbox: Sandbox
) -> None:
    """A watch tells of it as of one that was deleted, and a list doesn't have it."""
    made = make("heard"), make("missed")
    informer.list()
    informer.start()
    label(ci, "heard", **{SOURCE: "other"})
    handler.wait(lambda: handler.jobs["heard"] == 2)
    miss(sandbox, "pods", lambda: label(ci, "missed", **{SOURCE: None}))
    handler.wait(lambda: handler.jobs["missed"] == 2)
    assert names(informer) == []
    found = [informer.get(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in made]
    assert [pod and pod["metadata"]["uid"] for pod in found] == [
        pod["metadata"]["uid"] for pod in made
    ]
    assert names(informer) == ["heard", "missed"]
    delete(ci, "heard")
    assert informer.get(made[0]["metadata"]["name"], made[0]["metadata"]["uid"]) is None
    informer.upsert(made[0])
    assert names(informer) == ["missed"]
